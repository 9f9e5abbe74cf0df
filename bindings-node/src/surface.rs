//! What one environment (the main thread, or a worker) shares between its calls, and how calls come
//! in.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::rc::Rc;

use napi_sys as sys;

use crate::failure::{Class, Failure};
use crate::js::{KeptValue, Result, Scope, Value};

/// Numbers in the scratch array: the head of a decision, six for each limit, and at the end one of
/// `lib/wait.js`.
pub(crate) const SCRATCH: usize = 64;

/// What an environment's calls share. There is one for each time that the package is loaded.
pub(crate) struct Surface {
    errors: ErrorClasses,
    /// A Float64Array on which native code writes what JavaScript reads next.
    _scratch: KeptValue,
    numbers: *mut f64,
    /// Texts that are named by their number; JavaScript has the same list.
    texts: KeptValue,
    /// Their numbers. There are as many as policies have names and attachments.
    known: RefCell<HashMap<Box<str>, u32>>,
}

/// The classes of errors, as the JavaScript that loaded us has them. Node-API would make errors of
/// the environment's own classes, and Jest runs tests where `TypeError` is another one.
struct ErrorClasses {
    tidegate: KeptValue,
    type_error: KeptValue,
    range_error: KeptValue,
}

impl Surface {
    /// The class to make an error of. There is none to make if JavaScript has thrown.
    pub(crate) fn error_class(&self, class: Class) -> Option<&KeptValue> {
        match class {
            Class::Tidegate => Some(&self.errors.tidegate),
            Class::Type => Some(&self.errors.type_error),
            Class::Range => Some(&self.errors.range_error),
            Class::Thrown => None,
        }
    }

    fn scratch(&self) -> &[Cell<f64>; SCRATCH] {
        // SAFETY: the array is kept, has so many numbers, and is the package's own. Only the
        // environment's thread reads it.
        unsafe { &*self.numbers.cast() }
    }

    /// Writes numbers for JavaScript to read, from place `at` on.
    #[inline]
    pub(crate) fn write(&self, at: usize, numbers: &[f64]) {
        let places = self.scratch().iter().skip(at);
        places.zip(numbers).for_each(|(place, number)| place.set(*number));
    }

    /// The first numbers, as JavaScript has written them.
    pub(crate) fn read<const N: usize>(&self) -> [f64; N] {
        const { assert!(N <= SCRATCH) };
        std::array::from_fn(|place| self.scratch()[place].get())
    }

    /// The number of a text.
    pub(crate) fn text(&self, scope: Scope<'_>, text: &str) -> Result<u32> {
        if let Some(number) = self.known.borrow().get(text) {
            return Ok(*number);
        }
        let number = self.known.borrow().len() as u32;
        scope.set_element(scope.kept(&self.texts)?, number, scope.text(text)?)?;
        self.known.borrow_mut().insert(text.into(), number);
        Ok(number)
    }
}

/// A call: its environment, and what its function is about.
pub(crate) struct NativeCall<'c, T> {
    pub(crate) scope: Scope<'c>,
    pub(crate) surface: &'c Rc<Surface>,
    pub(crate) it: &'c T,
}

/// What a function has as its data.
struct Bound<T> {
    surface: Rc<Surface>,
    it: T,
}

/// What a function hands back; nothing is `undefined`.
pub(crate) type NativeResult = Result<Option<Value>>;

/// Runs a function's body. What it fails for is thrown, and no panic goes further.
unsafe extern "C" fn enter<T, F, const N: usize>(
    env: sys::napi_env,
    info: sys::napi_callback_info,
) -> Value
where
    F: Fn(NativeCall<'_, T>, [Value; N]) -> NativeResult,
{
    // SAFETY: this is the call.
    let scope = unsafe { Scope::new(env) };
    // SAFETY: as before.
    let Some((arguments, data)) = (unsafe { scope.arguments::<N>(info) }) else {
        return scope.boolean(false).unwrap_or(ptr::null_mut());
    };
    // SAFETY: `bind` made the function with such data, which lives as long as the function.
    let bound = unsafe { &*data.cast::<Bound<T>>() };
    // SAFETY: of no size, which `bind` has checked: every address is one of it.
    let body = unsafe { ptr::NonNull::<F>::dangling().as_ref() };
    let call = NativeCall { scope, surface: &bound.surface, it: &bound.it };
    // If not even that can be done, Node has thrown, or is about to end. The answer is no then.
    let throw = |failure: Failure| {
        let _ = failure.throw(scope, &bound.surface);
        scope.boolean(false).unwrap_or(ptr::null_mut())
    };
    // A failure is thrown within: a result that holds one would go through memory.
    let run = || match body(call, arguments) {
        Ok(answer) => answer.unwrap_or(ptr::null_mut()),
        Err(failure) => throw(failure),
    };
    let ran = catch_unwind(AssertUnwindSafe(run));
    ran.unwrap_or_else(|panic| throw(Failure::panicked(panic)))
}

/// A JavaScript function that runs `body` on `it`.
pub(crate) fn bind<T: 'static, F, const N: usize>(
    scope: Scope<'_>,
    surface: &Rc<Surface>,
    it: T,
    _body: F,
) -> Result<Value>
where
    F: Fn(NativeCall<'_, T>, [Value; N]) -> NativeResult + 'static,
{
    const { assert!(size_of::<F>() == 0, "a function's body captures nothing") };
    let data = Box::new(Bound { surface: surface.clone(), it });
    // SAFETY: the callback for such data.
    unsafe { scope.function(enter::<T, F, N>, data) }
}

/// Makes the functions of an environment, given the classes of its errors:
/// `setup(TidegateError, TypeError, RangeError)`.
unsafe extern "C" fn setup(env: sys::napi_env, info: sys::napi_callback_info) -> Value {
    // SAFETY: this is the call.
    let scope = unsafe { Scope::new(env) };
    // SAFETY: as before.
    let Some((errors, _)) = (unsafe { scope.arguments::<3>(info) }) else {
        return ptr::null_mut();
    };
    let made = catch_unwind(AssertUnwindSafe(|| make(scope, errors)));
    made.ok().and_then(Result::ok).unwrap_or(ptr::null_mut())
}

fn make(scope: Scope<'_>, [tidegate, type_error, range_error]: [Value; 3]) -> Result<Value> {
    let (scratch, numbers) = scope.doubles(SCRATCH)?;
    let texts = scope.array_of_texts([].into_iter())?;
    let surface = Rc::new(Surface {
        errors: ErrorClasses {
            tidegate: scope.keep(tidegate)?,
            type_error: scope.keep(type_error)?,
            range_error: scope.keep(range_error)?,
        },
        _scratch: scope.keep(scratch)?,
        numbers,
        texts: scope.keep(texts)?,
        known: RefCell::default(),
    });
    let exports = scope.object()?;
    scope.set(exports, c"scratch", scratch)?;
    scope.set(exports, c"texts", texts)?;
    crate::functions(&mut |name, function| scope.set(exports, name, function), scope, &surface)?;
    Ok(exports)
}

/// What Node calls when the module is loaded, in each environment anew.
///
/// # Safety
/// Node's to call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(env: sys::napi_env, exports: Value) -> Value {
    #[cfg(target_env = "msvc")]
    if catch_unwind(find_functions).is_err() {
        return exports;
    }
    // SAFETY: Node's word.
    let scope = unsafe { Scope::new(env) };
    // SAFETY: `setup` reads no data.
    let function = unsafe { scope.function(setup, Box::new(())) };
    if let Ok(function) = function {
        let _ = scope.set(exports, c"setup", function);
    }
    exports
}

/// Finds Node's functions in the program that runs. Windows' loader does not do that by itself,
/// and until then each of them is one that fails.
#[cfg(target_env = "msvc")]
fn find_functions() {
    static FOUND: std::sync::Once = std::sync::Once::new();
    FOUND.call_once(|| {
        // SAFETY: the program is never unloaded.
        std::mem::forget(unsafe { sys::setup() });
    });
}

/// The version of Node-API that is used, which all of Node 20 has.
#[unsafe(no_mangle)]
pub extern "C" fn node_api_module_get_api_version_v1() -> i32 {
    8
}

/// Where a function goes: by its name.
pub(crate) type Add<'a> = &'a mut dyn FnMut(&CStr, Value) -> Result<()>;
