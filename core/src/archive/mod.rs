//! Strict readers of parameter archives over bytes.
