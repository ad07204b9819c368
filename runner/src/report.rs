//! The reports of one run. (being written)
