"""PriceTable: prefers cheap nodes by a table of prices, which may change while the plugin runs."""

import csv
import logging
import os
import time

from outboard_plugin import Plugin, serve

log = logging.getLogger("price_table")


def read_table(path):
    """Reads {name: price} from a CSV file with a header. ValueError names the invalid line."""
    prices = {}
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        next(rows, None)
        for row in rows:
            if not row:
                continue
            try:
                name, price = row[0].strip(), float(row[1])
            except (IndexError, ValueError):
                raise ValueError(f"{path}:{rows.line_num}: expected a name and a price, not {','.join(row)!r}") from None
            if not name or not 0 <= price < float("inf"):
                raise ValueError(f"{path}:{rows.line_num}: expected a name and a finite price that is not negative")
            prices[name] = price
    if not prices:
        raise ValueError(f"{path}: no prices")
    return prices


class PriceTable(Plugin):
    clock = staticmethod(time.monotonic)

    def configure(self, args):
        for field in sorted(set(args) - {"file", "label", "refreshSeconds"}):
            raise ValueError(f"{field}: unknown field")
        file = args.get("file")
        if not isinstance(file, str) or not file:
            raise ValueError("file: Required value: the path of a CSV file")
        refresh = args.get("refreshSeconds", 10)
        if isinstance(refresh, bool) or not isinstance(refresh, (int, float)) or refresh <= 0:
            raise ValueError("refreshSeconds: must be greater than zero")
        try:
            seen, prices = self.stamp(file), read_table(file)
        except (OSError, ValueError) as error:
            raise ValueError(f"file: {error}") from None
        self.file, self.label, self.refresh = file, args.get("label", "node.kubernetes.io/instance-type"), refresh
        self.seen, self.looked, self.prices = seen, self.clock(), prices

    def score(self, pod, node):
        self.look()
        price = self.prices.get(node.labels[self.label]) if self.label in node.labels else None
        if price is None:
            return 0
        low, high = min(self.prices.values()), max(self.prices.values())
        return 100 if high == low else round(100 * (high - price) / (high - low))

    def look(self):
        """Loads a changed table. Never waits: checks the file at most once per refresh period."""
        if self.clock() - self.looked < self.refresh:
            return
        self.looked = self.clock()
        try:
            stamp = self.stamp(self.file)
            if stamp != self.seen:
                self.prices, self.seen = read_table(self.file), stamp
                log.info("Price table reloaded from %s: %d prices", self.file, len(self.prices))
        except (OSError, ValueError) as error:
            log.error("Price table reload failed: %s; keeping the last prices", error)

    @staticmethod
    def stamp(path):
        status = os.stat(path)
        return status.st_mtime_ns, status.st_size, status.st_ino


if __name__ == "__main__":
    serve(PriceTable())
