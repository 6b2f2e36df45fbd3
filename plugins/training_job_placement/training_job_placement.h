// TrainingJobPlacement: keeps the pods of a training job in one topology domain, and remembers
// which.
#ifndef OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_TRAINING_JOB_PLACEMENT_H_
#define OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_TRAINING_JOB_PLACEMENT_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::training_job_placement {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::training_job_placement

#endif  // OUTBOARD_PLUGINS_TRAINING_JOB_PLACEMENT_TRAINING_JOB_PLACEMENT_H_
