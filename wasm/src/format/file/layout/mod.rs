//! Page layouts: how levels and values of a page lie in its buffers.
