package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// expression is a query of a file for monitoring. says are the texts of an alert, which name labels of its result.
type expression struct {
	where, text string
	says        []string
}

// rules is the file of Prometheus, as it reads it.
type rulesFile struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// alertExpressions reads the alert rules, strictly.
func alertExpressions(t *testing.T) (all []expression) {
	t.Helper()
	data, err := os.ReadFile("../../deploy/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var f rulesFile
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range f.Groups {
		for _, r := range g.Rules {
			all = append(all,
				expression{"alert " + r.Alert, r.Expr,
					[]string{r.Annotations["summary"], r.Annotations["description"]}})
			if seen[r.Alert] || !model.LegacyValidation.IsValidMetricName(r.Alert) {
				t.Errorf("the alert %q is there twice, or has no valid name", r.Alert)
			}
			seen[r.Alert] = true
			if r.For != "" {
				if _, err := model.ParseDuration(r.For); err != nil {
					t.Errorf("%s: %v", r.Alert, err)
				}
			}
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) ||
				r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s lacks a severity, a summary or a description", r.Alert)
			}
		}
	}
	return all
}

// boardExpressions reads the queries of the Grafana board. Its variables have values as Grafana gives them.
func boardExpressions(t *testing.T) (all []expression) {
	t.Helper()
	data, err := os.ReadFile("../../deploy/monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.Title == "" || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 ||
			p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %d %q has no title, query or place, or an id that another has", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, query := range p.Targets {
			all = append(all, expression{"panel " + p.Title,
				strings.NewReplacer("$instance", ".*", "$__rate_interval", "5m").Replace(query.Expr), nil})
		}
	}
	for _, v := range board.Templating.List {
		if name, _, is := strings.Cut(strings.TrimPrefix(v.Definition, "label_values("), ","); is {
			all = append(all, expression{"variable " + v.Name, name, nil})
		}
	}
	return all
}

var (
	metricRow     = regexp.MustCompile("(?m)^\\| `(belfry_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	labelOfRow    = regexp.MustCompile("(?:^|[,;] )`([a-z]+)`")
	nameOfLibrary = regexp.MustCompile(`fqName: "([^"]+)"`)
)

// knownMetrics returns the labels of all metrics that a belfry has: those of docs/reference/metrics.md, which a test of
// pkg/app compares with belfry, and those of Go and the process.
func knownMetrics(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{"up": {""}}
	for _, m := range metricRow.FindAllStringSubmatch(string(page), -1) {
		labels := []string{""}
		// After a colon are the values of a label, up to a semicolon.
		for one := range strings.SplitSeq(strings.TrimSpace(m[3]), "; ") {
			names, _, _ := strings.Cut(one, ":")
			for _, l := range labelOfRow.FindAllStringSubmatch(names, -1) {
				labels = append(labels, l[1])
			}
		}
		if m[2] != "histogram" {
			all[m[1]] = labels
			continue
		}
		all[m[1]+"_bucket"] = append([]string{"le"}, labels...)
		all[m[1]+"_sum"], all[m[1]+"_count"] = labels, labels
	}
	if len(all) < 50 {
		t.Fatalf("the reference has %d metrics", len(all))
	}
	descs := make(chan *prometheus.Desc)
	go func() {
		collectors.NewGoCollector().Describe(descs)
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}).Describe(descs)
		close(descs)
	}()
	for d := range descs {
		if m := nameOfLibrary.FindStringSubmatch(d.String()); m != nil {
			all[m[1]] = []string{""}
		}
	}
	return all
}

// resultLabels returns the labels that the result of an expression has.
func resultLabels(e parser.Expr, known map[string][]string) []string {
	switch e := e.(type) {
	case *parser.ParenExpr:
		return resultLabels(e.Expr, known)
	case *parser.AggregateExpr:
		return e.Grouping
	case *parser.BinaryExpr:
		left, right := resultLabels(e.LHS, known), resultLabels(e.RHS, known)
		if e.Op == parser.LOR || len(left) == 0 {
			return append(slices.Clone(left), right...)
		}
		return left
	case *parser.Call:
		for _, arg := range e.Args {
			if all := resultLabels(arg, known); len(all) > 0 {
				return all
			}
		}
	case *parser.MatrixSelector:
		return resultLabels(e.VectorSelector, known)
	case *parser.VectorSelector:
		return append([]string{"job", "instance"}, known[e.Name]...)
	}
	return nil
}

// checkSays executes a text of an alert as Prometheus does, with the labels that its result has.
func checkSays(t *testing.T, where, text string, has []string) {
	t.Helper()
	written := func(v float64) string { return fmt.Sprint(v) }
	labels := map[string]string{}
	for _, name := range has {
		labels[name] = "x"
	}
	parsed, err := template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"humanize": written, "humanize1024": written, "humanizeDuration": written, "humanizePercentage": written,
	}).Parse("{{$labels := .Labels}}{{$value := .Value}}" + text)
	if err == nil {
		err = parsed.Execute(io.Discard, struct {
			Labels map[string]string
			Value  float64
		}{labels, 1})
	}
	if err != nil {
		t.Errorf("%s: %q: %v", where, text, err)
	}
}

// Each query of the alerts and of the board is one, and is about metrics and labels that belfry has.
func TestAlertsAndTheBoardAreAboutMetricsThatExist(t *testing.T) {
	known := knownMetrics(t)
	exprs := append(alertExpressions(t), boardExpressions(t)...)
	used := map[string]bool{}
	parsing := parser.NewParser(parser.Options{})
	for _, e := range exprs {
		parsed, err := parsing.ParseExpr(e.text)
		if err != nil {
			t.Errorf("%s: %s: %v", e.where, e.text, err)
			continue
		}
		for _, says := range e.says {
			checkSays(t, e.where, says, resultLabels(parsed, known))
		}
		var names, grouped []string
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.VectorSelector:
				names = append(names, n.Name)
				for _, m := range n.LabelMatchers {
					if m.Name != model.MetricNameLabel {
						grouped = append(grouped, m.Name)
					}
				}
			case *parser.AggregateExpr:
				grouped = append(grouped, n.Grouping...)
			}
			return nil
		})
		if len(names) == 0 {
			t.Errorf("%s: %s is about no metric", e.where, e.text)
		}
		has := []string{"job", "instance"} // of each target
		for _, name := range names {
			used[name] = true
			if known[name] == nil {
				t.Errorf("%s: belfry has no metric %s", e.where, name)
			}
			has = append(has, known[name]...)
		}
		for _, label := range grouped {
			if !slices.Contains(has, label) {
				t.Errorf("%s: %v have no label %s, but %q", e.where, names, label, has)
			}
		}
	}
	for _, name := range []string{"belfry_ready", "belfry_part_up", "belfry_dead_letters", "belfry_listener_pending",
		"belfry_listener_missed", "belfry_backup_failed", "belfry_bus_shortcomings", "belfry_http_requests_total",
		"belfry_events_pending",
		"belfry_mailer_up", "belfry_mails_total", "belfry_backup_last_success_timestamp_seconds",
		"belfry_disk_free_bytes", "belfry_certificate_expiry_timestamp_seconds", "belfry_build_info"} {
		if !used[name] {
			t.Errorf("no alert and no panel is about %s", name)
		}
	}
}
