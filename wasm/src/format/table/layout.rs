//! Every path of a table directory.
