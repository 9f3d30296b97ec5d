//! Who may take, keep and lose a claim.
