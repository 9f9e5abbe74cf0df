//! Whether there is memory for what is to be done.
//!
//! A small allocation that fails ends the process. So what needs many of them asks first.

/// Whether the system would give so many bytes now.
pub(crate) fn is_there(bytes: usize) -> bool {
    let mut room = Vec::<u8>::new();
    let given = room.try_reserve_exact(bytes).is_ok();
    // Else the compiler leaves the allocation out.
    std::hint::black_box(&mut room);
    given
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_room_for_a_page_and_none_for_everything() {
        assert!(super::is_there(4096) && !super::is_there(isize::MAX as usize));
    }
}
