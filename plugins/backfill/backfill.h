// Backfill: the group that is first in line and does not fit yet gets a time from which on its room
// is kept; others use that room only if they are gone by then.
#ifndef OUTBOARD_PLUGINS_BACKFILL_BACKFILL_H_
#define OUTBOARD_PLUGINS_BACKFILL_BACKFILL_H_

#include "plugin_host/sdk/plugin.h"

namespace outboard::backfill {

sdk::PluginDescriptor Descriptor();

}  // namespace outboard::backfill

#endif  // OUTBOARD_PLUGINS_BACKFILL_BACKFILL_H_
