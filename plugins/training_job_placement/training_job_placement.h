// TrainingJobPlacement: prefers one topology domain for all pods of a training job, and records it.
#ifndef OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_TRAINING_JOB_PLACEMENT_H_
#define OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_TRAINING_JOB_PLACEMENT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::training_job_placement {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::training_job_placement

#endif  // OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_TRAINING_JOB_PLACEMENT_H_
