//! Functions about notifications.

use base::Result;
use types::Datum;

use super::EvalContext;

pub(super) fn notify(cx: &dyn EvalContext, args: &[Datum]) -> Result<Datum> {
    let text = |at: usize| match args.get(at) {
        Some(Datum::Text(text)) => &**text,
        _ => "",
    };
    cx.notify(text(0), text(1))?;
    Ok(Datum::text(""))
}

pub(super) fn queue_usage(cx: &dyn EvalContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Float8(cx.notification_usage()))
}
