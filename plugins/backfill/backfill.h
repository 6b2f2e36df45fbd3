// Backfill: the first group in line that does not fit gets a reservation from a computed time on.
// Other pods use the reserved room only if they end before that time.
#ifndef OUTBOARD_PLUGINS_BACKFILL_BACKFILL_H_
#define OUTBOARD_PLUGINS_BACKFILL_BACKFILL_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::backfill {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_BACKFILL_H_
