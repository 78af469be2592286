package main

import (
	"fmt"
	"slices"
	"strings"
)

// point is what bench/load measured; its fields are explained there. Simulated is what bench/scale adds.
type point struct {
	Part       string  `json:"part"`
	Backend    string  `json:"backend"`
	Operation  string  `json:"operation"`
	Fronts     int     `json:"fronts"`
	Workers    int     `json:"workers"`
	Processors int     `json:"processors"`
	Rate       float64 `json:"rate"`
	Simulated  float64 `json:"simulated"`
	Objects    int     `json:"objects"`
	Beside     int     `json:"beside"`
	Memory     int     `json:"memory"`
	Times      float64 `json:"times"`
	Least      float64 `json:"least"`
	Most       float64 `json:"most"`
}

// figure is one file.
type figure struct {
	name, title, x, y string
	logarithmic       bool // x
	series            []series
}

// series is one line.
type series struct {
	name   string
	color  int
	dashed bool // without marks
	at     []mark
}

// mark is a point of a line, with the least and the greatest value that were measured, if there are several.
type mark struct{ x, y, least, most float64 }

// figuresOf are the figures that some points make, in the order of the points.
func figuresOf(all []point) (figures []figure) {
	for _, backend := range distinct(all, "scale", func(p *point) string { return p.Backend }) {
		kind, _, _ := strings.Cut(backend, " ")
		figures = append(figures,
			rates(all, backend, figure{name: "scale-" + kind + "-fronts",
				title: "Requests on two processors, " + backend, x: "processes with the role front",
				y: "requests a second"},
				[]string{"create", "get"}, func(p *point) (x, others int) { return p.Fronts, p.Workers }),
			rates(all, backend, figure{name: "scale-" + kind + "-workers",
				title: "Mapped events on two processors, " + backend, x: "processes with the role mapping",
				y: "events a second"},
				[]string{"map", "map-shared"}, func(p *point) (x, others int) { return p.Workers, p.Fronts }))
	}
	figures = append(figures, growth(all), containers(all))
	return slices.DeleteFunc(figures, func(f figure) bool { return len(f.series) == 0 })
}

// distinct are the names that the points of a part have, in their order.
func distinct(all []point, part string, name func(p *point) string) (names []string) {
	for i := range all {
		if p := &all[i]; p.Part == part && !slices.Contains(names, name(p)) {
			names = append(names, name(p))
		}
	}
	return names
}

// rates are those of some operations by the number of one kind of process, where there is one of the other kind.
func rates(all []point, backend string, f figure, operations []string,
	processes func(p *point) (x, others int)) figure {
	for color, operation := range operations {
		measured, simulated := series{name: operation, color: color},
			series{name: operation + ", simulated", color: color, dashed: true}
		for i := range all {
			p := &all[i]
			x, others := processes(p)
			if p.Part != "scale" || p.Backend != backend || p.Operation != operation || p.Processors != 2 ||
				others != 1 {
				continue
			}
			measured.at = append(measured.at, mark{x: float64(x), y: p.Rate})
			if p.Simulated > 0 {
				simulated.at = append(simulated.at, mark{x: float64(x), y: p.Simulated})
			}
		}
		f.add(measured)
		f.add(simulated)
	}
	return f
}

// growth is how much longer operations take with more objects.
func growth(all []point) figure {
	f := figure{name: "growth", title: "Time of operations, by the objects in a folder", x: "objects",
		y: "times as long as with few", logarithmic: true}
	for color, operation := range distinct(all, "growth", func(p *point) string { return p.Operation }) {
		s := series{name: operation, color: color}
		for _, p := range all {
			if p.Part != "growth" || p.Operation != operation {
				continue
			}
			if len(s.at) == 0 {
				f.y = fmt.Sprintf("times as long as with %s", thousands(p.Beside))
				s.at = append(s.at, mark{x: float64(p.Beside), y: 1})
			}
			s.at = append(s.at, mark{float64(p.Objects), p.Times, p.Least, p.Most})
		}
		f.add(s)
	}
	return f
}

func (f *figure) add(s series) {
	if len(s.at) > 0 {
		slices.SortStableFunc(s.at, func(a, b mark) int { return int(a.x - b.x) })
		f.series = append(f.series, s)
	}
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// containers is the rate of requests to servers by the memory that they may use.
func containers(all []point) figure {
	f := figure{name: "memory", title: "A mix of requests, by the limit of a control group", x: "MiB",
		y: "requests a second", logarithmic: true}
	for color, server := range distinct(all, "containers", func(p *point) string { return p.Backend }) {
		s := series{name: server, color: color}
		for _, p := range all {
			if p.Part == "containers" && p.Backend == server {
				s.at = append(s.at, mark{x: float64(p.Memory), y: p.Rate})
			}
		}
		f.add(s)
	}
	return f
}
