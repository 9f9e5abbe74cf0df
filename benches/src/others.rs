//! Other crates, as a user would key them.
//!
//! The crates governor and throttlecrab have keys of their own. A limiter of leaky-bucket or
//! ratelimit has no key, so there is one for each key, in a DashMap with ahash. A throttlecrab
//! limiter wants `&mut`, so it is behind a mutex. It has its adaptive store, with room for all
//! keys from the start.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::Mutex;
use std::time::{Instant, SystemTime};

use ahash::RandomState;
use dashmap::DashMap;
use governor::clock::DefaultClock;
use governor::state::keyed::DashMapStateStore;
use throttlecrab::{AdaptiveStore, RateLimiter};

use crate::{Limiter, Quota};

/// governor, over its DashMap.
pub struct Governor<S: BuildHasher + Clone>(
    governor::RateLimiter<String, DashMapStateStore<String, S>, DefaultClock>,
);

/// governor with this hasher; its default is `std::hash::RandomState`.
pub fn governor_with<S: BuildHasher + Clone>(quota: Quota, hasher: S) -> Governor<S> {
    let whole = |n| NonZeroU32::new(n).expect("no quota is 0");
    let allowed = governor::Quota::with_period(quota.per / quota.max)
        .expect("no quota is faster than a nanosecond")
        .allow_burst(whole(quota.burst));
    let store = DashMap::with_hasher(hasher);
    Governor(governor::RateLimiter::new(allowed, store, DefaultClock::default()))
}

impl<S: BuildHasher + Clone + Send + Sync> Limiter for Governor<S> {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        self.0.check_key(key).is_ok()
    }
}

/// leaky-bucket, one for each key.
pub struct LeakyBucket {
    map: DashMap<String, leaky_bucket::RateLimiter, RandomState>,
    quota: Quota,
}

impl LeakyBucket {
    /// With no key yet.
    pub fn new(quota: Quota) -> LeakyBucket {
        LeakyBucket { map: DashMap::default(), quota }
    }

    fn limiter(&self) -> leaky_bucket::RateLimiter {
        let Quota { max, per, burst, .. } = self.quota;
        let (max, burst) = (max as usize, burst as usize);
        leaky_bucket::RateLimiter::builder()
            .max(burst)
            .initial(burst)
            .refill(max)
            .interval(per)
            .build()
    }
}

impl Limiter for LeakyBucket {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        if let Some(limiter) = self.map.get(key) {
            return limiter.try_acquire(1);
        }
        self.map.entry(key.clone()).or_insert_with(|| self.limiter()).try_acquire(1)
    }
}

/// ratelimit, one for each key.
pub struct Ratelimit {
    map: DashMap<String, ratelimit::Ratelimiter, RandomState>,
    quota: Quota,
}

impl Ratelimit {
    /// With no key yet.
    pub fn new(quota: Quota) -> Ratelimit {
        Ratelimit { map: DashMap::default(), quota }
    }

    fn limiter(&self) -> ratelimit::Ratelimiter {
        let Quota { max, per, burst, .. } = self.quota;
        ratelimit::Ratelimiter::builder(max.into())
            .period(per)
            .max_tokens(burst.into())
            .initial_available(burst.into())
            .build()
            .expect("a quota that ratelimit can keep")
    }
}

impl Limiter for Ratelimit {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        if let Some(limiter) = self.map.get(key) {
            return limiter.try_wait().is_ok();
        }
        self.map.entry(key.clone()).or_insert_with(|| self.limiter()).try_wait().is_ok()
    }
}

/// throttlecrab behind a mutex.
pub struct Throttlecrab {
    limiter: Mutex<RateLimiter<AdaptiveStore>>,
    quota: Quota,
}

impl Throttlecrab {
    /// With room for `capacity` keys.
    pub fn new(quota: Quota, capacity: usize) -> Throttlecrab {
        let store = AdaptiveStore::with_capacity(capacity);
        Throttlecrab { limiter: Mutex::new(RateLimiter::new(store)), quota }
    }
}

impl Limiter for Throttlecrab {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        let Quota { max, per, burst, .. } = self.quota;
        let mut limiter = self.limiter.lock().expect("no bench panics with the lock");
        let (burst, max, per) = (burst.into(), max.into(), per.as_secs() as i64);
        limiter.rate_limit(key, burst, max, per, 1, SystemTime::now()).is_ok_and(|(yes, _)| yes)
    }
}

/// The token bucket that one writes by hand.
pub struct MutexMap {
    buckets: Mutex<HashMap<String, (f64, Instant)>>,
    quota: Quota,
}

impl MutexMap {
    /// With no key yet.
    pub fn new(quota: Quota) -> MutexMap {
        MutexMap { buckets: Mutex::default(), quota }
    }

    fn spend(&self, bucket: &mut (f64, Instant), now: Instant) -> bool {
        let rate = f64::from(self.quota.max) / self.quota.per.as_secs_f64();
        let refilled = bucket.0 + (now - bucket.1).as_secs_f64() * rate;
        *bucket = (refilled.min(self.quota.burst.into()), now);
        let enough = bucket.0 >= 1.0;
        bucket.0 -= f64::from(u8::from(enough));
        enough
    }
}

impl Limiter for MutexMap {
    #[inline]
    fn allow(&self, key: &String) -> bool {
        let mut buckets = self.buckets.lock().expect("no bench panics with the lock");
        let now = Instant::now();
        if let Some(bucket) = buckets.get_mut(key) {
            return self.spend(bucket, now);
        }
        let mut bucket = (f64::from(self.quota.burst), now);
        let allowed = self.spend(&mut bucket, now);
        buckets.insert(key.clone(), bucket);
        allowed
    }
}
