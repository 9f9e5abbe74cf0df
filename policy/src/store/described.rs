//! What a table file says of itself: what it holds, and the limits that it was made for.

use serde_json::{Value, json};
use tidegate_core::Algorithm;

use crate::config::limit::{Counts, algorithm_name};
use crate::key::name::NamedCount;

/// What a table file of a rule holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Inspected {
    /// The rule.
    pub rule: String,
    /// The version of the file's format.
    pub format: u64,
    /// Its limits as the file describes them.
    pub limits: Vec<InspectedLimit>,
    /// Keys that it may hold live.
    pub capacity: usize,
    /// Rows in use, in the table of the rule's first scope.
    pub keys: usize,
    /// Keys that were denied and are remembered for it.
    pub penalised: usize,
    /// Keys that have spent of a budget.
    pub spending: usize,
    /// Overrides in force.
    pub overrides: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether another table took this one's place while it was looked at.
    pub retired: bool,
    /// Keys that were denied most; estimates once a rule is busy.
    pub top_offenders: Vec<NamedCount>,
}

/// A limit as a table file describes it. The file holds no `max` and no period: those may change
/// while the counts go on.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use tidegate::{Algorithm, Limiter};
///
/// let folder = std::env::temp_dir().join(format!("tidegate-limit-{}", std::process::id()));
/// let builder = Limiter::builder().limits("1/h window").capacity(10);
/// let limiter = builder.store(format!("file:{}", folder.display())).build()?;
/// let limit = &Limiter::inspect(&folder)?[0].limits[0];
/// assert_eq!((&*limit.name, limit.algorithm), ("1/h", Algorithm::Window));
/// assert_eq!(limit.scope, [0]);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # }
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
    /// # #[cfg(target_os = "linux")] {
    /// # let folder = std::env::temp_dir().join(format!("tidegate-lmap-{}", std::process::id()));
    /// # let builder = tidegate::Limiter::builder().limits("1/h").capacity(10);
    /// # let limiter = builder.store(format!("file:{}", folder.display())).build()?;
    /// let limit = &tidegate::Limiter::inspect(&folder)?[0].limits[0];
    /// assert_eq!(limit.to_value()["algorithm"], "bucket");
    /// # std::fs::remove_dir_all(folder).unwrap();
    /// # }
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
