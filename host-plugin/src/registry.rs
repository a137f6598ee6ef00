//! The lanes of a device by name, for waits of one on another. A name is a place and how often it was given out, so
//! the name of a lane that is gone never leads to a later one.

use crate::{limits::LANES_MAX, track::Track};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Bits of a name that are the place.
const PLACE_BITS: u32 = 12;
const _: () = assert!(1 << PLACE_BITS == LANES_MAX as usize);

#[derive(Default)]
struct Place {
    turn: usize,
    track: Weak<Track>,
    taken: bool,
}

#[derive(Default)]
struct Inner {
    places: Vec<Place>,
    free: Vec<usize>,
}

/// All lanes.
#[derive(Default)]
pub(crate) struct Registry(Mutex<Inner>);

impl Registry {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names a track; `None` if there are as many lanes as there can be.
    pub(crate) fn enter(&self, track: &Arc<Track>) -> Option<usize> {
        let mut inner = self.lock();
        let at = match inner.free.pop() {
            Some(at) => at,
            None if inner.places.len() == LANES_MAX as usize => return None,
            None => {
                inner.places.push(Place::default());
                inner.places.len() - 1
            }
        };
        let place = &mut inner.places[at];
        *place = Place { turn: place.turn + 1, track: Arc::downgrade(track), taken: true };
        Some(place.turn << PLACE_BITS | at)
    }

    /// Forgets a name.
    pub(crate) fn leave(&self, name: usize) {
        let mut inner = self.lock();
        let at = name & ((1 << PLACE_BITS) - 1);
        let live = inner.places.get_mut(at).filter(|place| place.taken && place.turn == name >> PLACE_BITS);
        if let Some(place) = live {
            place.taken = false;
            place.track = Weak::new();
            inner.free.push(at);
        }
    }

    /// The track of a live name.
    pub(crate) fn find(&self, name: usize) -> Option<Arc<Track>> {
        let inner = self.lock();
        let place = inner.places.get(name & ((1 << PLACE_BITS) - 1))?;
        if place.turn == name >> PLACE_BITS { place.track.upgrade() } else { None }
    }
}
