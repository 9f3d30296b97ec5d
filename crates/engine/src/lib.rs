//! The deeds of Baton.
