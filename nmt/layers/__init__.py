"""The equations of Bahdanau, Cho and Bengio (ICLR 2015), one concept per file, in torch alone."""

from nmt.layers.attention import Attention as Attention
from nmt.layers.attention import AttentionOutput as AttentionOutput
from nmt.layers.attention import FixedContext as FixedContext
from nmt.layers.decoder import Decoder as Decoder
from nmt.layers.decoder import DecoderState as DecoderState
from nmt.layers.encoder import BidirectionalEncoder as BidirectionalEncoder
from nmt.layers.encoder import Encoder as Encoder
from nmt.layers.encoder import ForwardEncoder as ForwardEncoder
from nmt.layers.gated_unit import GatedUnit as GatedUnit
from nmt.layers.initialisation import initialise as initialise
from nmt.layers.intervention import Intervention as Intervention
from nmt.layers.local_attention import LocalAttention as LocalAttention
from nmt.layers.lstm_unit import LstmUnit as LstmUnit
from nmt.layers.memory import Memory as Memory
from nmt.layers.memory import reorder as reorder
from nmt.layers.memory import select as select
from nmt.layers.network import Likelihood as Likelihood
from nmt.layers.network import Network as Network
from nmt.layers.output import Output as Output
from nmt.layers.readout import Readout as Readout
from nmt.layers.scoring import Additive as Additive
from nmt.layers.scoring import Cosine as Cosine
from nmt.layers.scoring import Dot as Dot
from nmt.layers.scoring import General as General
from nmt.layers.scoring import ScaledDot as ScaledDot
