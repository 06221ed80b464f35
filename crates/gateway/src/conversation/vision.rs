//! The model that looks at pictures in the place of one that cannot (`auxiliary.vision`).

use hermetic_agent::{
    LanguageModel, MediaPart, ModelText, PictureError, SpendingMeter, ToolResult, describe_picture,
};
use hermetic_redact::Redactor;
use hermetic_tools::ToolMedia;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::Gateway;

/// Such a model, as one turn uses it: what it takes is the turn's.
pub(crate) struct VisionModel<'a> {
    model: &'a dyn LanguageModel,
    meter: &'a dyn SpendingMeter,
    redactor: &'a Redactor,
}

impl<'a> VisionModel<'a> {
    /// Nothing where the model that answers is shown pictures itself.
    pub(super) fn of(gateway: &'a Gateway, meter: &'a dyn SpendingMeter) -> Option<Self> {
        Some(Self {
            model: gateway.vision.as_deref()?,
            meter,
            redactor: &gateway.redactor,
        })
    }

    pub(super) async fn describe(
        &self,
        picture: &ToolMedia,
        question: &str,
        stop: &CancellationToken,
    ) -> ToolResult {
        let failed = |error: &str| {
            let json = json!({"success": false, "error": error});
            ToolResult::failed(self.redactor.redact_json(json).to_text())
        };
        let Ok(part) = MediaPart::inline(picture.media_type, &picture.bytes) else {
            return failed("the picture is too large to be shown");
        };
        let question = ModelText::from(self.redactor.redact(question));
        let described = describe_picture(self.model, self.meter, part, question, stop).await;
        match described {
            Ok(words) => {
                let json = json!({"success": true, "analysis": words});
                ToolResult::new(self.redactor.redact_json(json).to_text())
            }
            Err(PictureError::TooDear(refused)) => failed(&refused.to_string()),
            Err(PictureError::Model(error)) => {
                tracing::warn!(%error, "a picture was not described");
                failed(error.for_chat())
            }
        }
    }
}

impl std::fmt::Debug for VisionModel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VisionModel")
            .field("model", &self.model.name())
            .finish_non_exhaustive()
    }
}
