"""Counts and times of a service, in the text form that Prometheus reads."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Metrics:
    """`gauges` are asked when somebody reads."""

    def __init__(self, gauges: Mapping[str, Callable[[], float]]) -> None:
        self.gauges = gauges
        self.requests: Counter[tuple[str, int]] = Counter()
        self.buckets: dict[str, list[int]] = {}
        self.seconds: dict[str, float] = {}
        self.characters = 0

    def answered(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self.buckets.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self.seconds[route] = self.seconds.get(route, 0.0) + seconds

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# TYPE regard_requests_total counter"
        for (route, status), count in sorted(self.requests.items()):
            yield f'regard_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# TYPE regard_request_seconds histogram"
        for route, counts in sorted(self.buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield f'regard_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'regard_request_seconds_sum{{route="{route}"}} {self.seconds[route]:.6f}'
            yield f'regard_request_seconds_count{{route="{route}"}} {total}'
        yield "# TYPE regard_characters_total counter"
        yield f"regard_characters_total {self.characters}"
        for name, gauge in sorted(self.gauges.items()):
            yield f"# TYPE regard_{name} gauge"
            yield f"regard_{name} {gauge():g}"
