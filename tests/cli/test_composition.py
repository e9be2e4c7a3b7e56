"""What Hydra is told before it composes."""

import copy

from hydra.core.config_store import ConfigStore

from nmt.cli.composition import register_configs


def test_there_is_one_store_of_schemas_and_no_copy():
    """Copies of it are nine tenths of the time that `--help` takes."""
    register_configs()
    store = ConfigStore.instance()
    assert copy.deepcopy([store]) == [store]
    assert copy.deepcopy([store])[0] is store
    assert "train_schema.yaml" in store.repo or store.list("")
