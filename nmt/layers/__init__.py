"""The equations of Bahdanau, Cho and Bengio (ICLR 2015), one idea a file; needs only torch."""

from nmt.layers.attention import Attention, AttentionOutput, FixedContext
from nmt.layers.decoder import Decoder, DecoderState, TeacherForced
from nmt.layers.encoder import BidirectionalEncoder, Encoder, ForwardEncoder
from nmt.layers.gated_unit import GatedUnit
from nmt.layers.initialisation import initialise
from nmt.layers.intervention import Intervention
from nmt.layers.local_attention import LocalAttention
from nmt.layers.lstm_unit import LstmUnit
from nmt.layers.memory import Memory, reorder, select
from nmt.layers.network import Likelihood, Network
from nmt.layers.output import Output
from nmt.layers.readout import Readout
from nmt.layers.scoring import Additive, Cosine, Dot, General, ScaledDot

__all__ = [
    "Additive",
    "Attention",
    "AttentionOutput",
    "BidirectionalEncoder",
    "Cosine",
    "Decoder",
    "DecoderState",
    "Dot",
    "Encoder",
    "FixedContext",
    "ForwardEncoder",
    "GatedUnit",
    "General",
    "Intervention",
    "Likelihood",
    "LocalAttention",
    "LstmUnit",
    "Memory",
    "Network",
    "Output",
    "Readout",
    "ScaledDot",
    "TeacherForced",
    "initialise",
    "reorder",
    "select",
]
