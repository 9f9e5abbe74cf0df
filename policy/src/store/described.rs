//! How a table file describes the limits that it was made for.

use serde_json::{Value, json};
use tidegate_core::Algorithm;

use crate::config::limit::{Counts, algorithm_name};

/// A limit as a table file describes it. The file holds no `max` and no period: those may change
/// while the counts go on.
///
/// ```
/// use tidegate::{Algorithm, Limiter};
///
/// let folder = std::env::temp_dir().join(format!("tidegate-limit-{}", std::process::id()));
/// let builder = Limiter::builder().limits("1/h window").capacity(10);
/// let limiter = builder.store(format!("file:{}", folder.display())).build()?;
/// let limit = &Limiter::inspect(&folder)?[0].limits[0];
/// assert_eq!((&*limit.name, limit.algorithm), ("1/h", Algorithm::Window));
/// assert_eq!(limit.scope, [0]);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), tidegate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InspectedLimit {
    /// Its name.
    pub name: String,
    /// Whether the name is the limit's own text. Such limits are matched by position.
    pub is_label: bool,
    /// How it counts.
    pub algorithm: Algorithm,
    /// The key parts that it counts by: 0 is the first.
    pub scope: Vec<usize>,
    /// What it counts.
    pub counts: Counts,
    /// Entries or permits that a row has room for; none where the algorithm keeps none.
    pub room: Option<u64>,
}

impl InspectedLimit {
    /// As a map, for surfaces that speak JSON. `label` and `counts` are left out at their defaults.
    ///
    /// ```
    /// # let folder = std::env::temp_dir().join(format!("tidegate-lmap-{}", std::process::id()));
    /// # let builder = tidegate::Limiter::builder().limits("1/h").capacity(10);
    /// # let limiter = builder.store(format!("file:{}", folder.display())).build()?;
    /// let limit = &tidegate::Limiter::inspect(&folder)?[0].limits[0];
    /// assert_eq!(limit.to_value()["algorithm"], "bucket");
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # Ok::<(), tidegate::Error>(())
    /// ```
    pub fn to_value(&self) -> Value {
        let mut limit = json!({
            "name": self.name,
            "algorithm": algorithm_name(self.algorithm),
            "scope": self.scope,
            "room": self.room,
        });
        if self.is_label {
            limit["label"] = json!(true);
        }
        // Left out where costs are counted, as in tables of versions that knew nothing else.
        if self.counts == Counts::Hits {
            limit["counts"] = json!("hits");
        }
        limit
    }
}
