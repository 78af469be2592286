package image

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"belfry/internal/schedule"
	"belfry/pkg/app/plan"
	"belfry/pkg/event"
)

// deployed is a process of a deployment: its environment, and the secrets that are in it.
type deployed struct {
	where   string
	command string
	env     map[string]string
	secrets []string
}

// secretOfCompose is a variable that has no default in a file of Compose.
var secretOfCompose = regexp.MustCompile(`\$\{([A-Z0-9_]+):\?`)

// ofCompose returns the processes of belfry in a file of Compose.
func ofCompose(t *testing.T, file string) (all []deployed) {
	t.Helper()
	services := documents(t, file)[0]["services"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if at(services[name], "image") != "belfry" {
			continue
		}
		p := deployed{where: file + ": " + name, command: fmt.Sprint(at(services[name], "command")),
			env: map[string]string{}}
		environment, _ := at(services[name], "environment").(map[string]any)
		for key, value := range environment {
			for _, m := range secretOfCompose.FindAllStringSubmatch(fmt.Sprint(value), -1) {
				p.secrets = append(p.secrets, m[1])
			}
			p.env[key] = interpolate(fmt.Sprint(value))
		}
		all = append(all, p)
	}
	return all
}

// podOf returns the pod of a manifest, and its labels; nil if it has none.
func podOf(d map[string]any) (pod any, labels map[string]any) {
	template := at(d, "spec", "template")
	if d["kind"] == "CronJob" {
		template = at(d, "spec", "jobTemplate", "spec", "template")
	}
	labels, _ = at(template, "metadata", "labels").(map[string]any)
	return at(template, "spec"), labels
}

// ofKubernetes returns the processes of belfry in manifests.
func ofKubernetes(t *testing.T, file string) (all []deployed) {
	t.Helper()
	for _, d := range documents(t, file) {
		pod, _ := podOf(d)
		if pod == nil {
			continue
		}
		container := at(pod, "containers", 0)
		p := deployed{where: fmt.Sprintf("%s: %v", file, at(d, "metadata", "name")),
			command: fmt.Sprint(at(container, "args")), env: map[string]string{}}
		if from := at(container, "envFrom"); from != nil {
			t.Errorf("%s gets all of a secret: %v", p.where, from)
		}
		variables, _ := at(container, "env").([]any)
		for _, v := range variables {
			name := at(v, "name").(string)
			if key, ok := at(v, "valueFrom", "secretKeyRef", "key").(string); ok {
				p.secrets = append(p.secrets, key)
				p.env[name] = "p-of-" + key
			} else {
				p.env[name] = fmt.Sprint(at(v, "value"))
			}
		}
		if slices.Contains(p.secrets, "MONGODB_URL") {
			p.env["MONGODB_URL"] = "mongodb://mongodb:27017"
		}
		all = append(all, p)
	}
	return all
}

// usersOfBus returns the users of nats.conf, whose passwords are p-of- and the names of their variables.
func usersOfBus(t *testing.T) map[string]*natsserver.User {
	t.Helper()
	text := read(t, "nats.conf")
	for _, name := range regexp.MustCompile(`\$(BELFRY_[A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		t.Setenv(name[1], "p-of-"+name[1])
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := natsserver.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*natsserver.User{}
	for _, u := range o.Users {
		all[u.Username] = u
	}
	return all
}

// may reports whether one of the subjects of a permission is, or could be, a subject.
func may(allowed *natsserver.SubjectPermission, subject string) bool {
	return allowed != nil &&
		slices.ContainsFunc(allowed.Allow, func(a string) bool { return natsserver.SubjectsCollide(a, subject) })
}

// A process that is taken over has the secrets of its own role, and not what makes it an admin of the bus, or another
// role.
func TestEachProcessGetsTheSecretsOfItsRole(t *testing.T) {
	users := usersOfBus(t)
	stores, files := []string{"MONGODB_URL"}, []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
	const compose, kubernetes = "deploy/cluster/compose.yaml", "deploy/kubernetes/cluster.yaml"
	filesOfCompose := []string{"S3_USER", "S3_PASSWORD"} // its MongoDB has no password
	want := map[string][]string{
		kubernetes + ": belfry-setup":  {"BELFRY_ADMIN_PASSWORD"},
		kubernetes + ": belfry-backup": slices.Concat([]string{"BELFRY_ADMIN_PASSWORD"}, stores, files),
		kubernetes + ": belfry-front":  slices.Concat([]string{"BELFRY_FRONT_PASSWORD"}, stores, files),
		// it removes files
		kubernetes + ": belfry-worker": slices.Concat([]string{"BELFRY_WORKER_PASSWORD"}, stores, files),
		compose + ": setup":            {"BELFRY_ADMIN_PASSWORD"},
		compose + ": front-1":          slices.Concat([]string{"BELFRY_FRONT_PASSWORD"}, filesOfCompose),
		compose + ": front-2":          slices.Concat([]string{"BELFRY_FRONT_PASSWORD"}, filesOfCompose),
		compose + ": worker-1":         slices.Concat([]string{"BELFRY_WORKER_PASSWORD"}, filesOfCompose),
		compose + ": worker-2":         slices.Concat([]string{"BELFRY_WORKER_PASSWORD"}, filesOfCompose),
	}
	configurations := map[string]string{compose: read(t, "deploy/cluster/belfry.yaml")}
	for _, d := range documents(t, kubernetes) {
		if text, ok := at(d, "data", "belfry.yaml").(string); ok {
			configurations[kubernetes] = text
		}
	}
	all := slices.Concat(ofCompose(t, compose), ofKubernetes(t, kubernetes))
	for _, p := range all {
		got := slices.Sorted(slices.Values(p.secrets))
		if !slices.Equal(got, slices.Sorted(slices.Values(want[p.where]))) {
			t.Errorf("%s gets %v, and needs %v", p.where, got, want[p.where])
		}
		file, _, _ := strings.Cut(p.where, ": ")
		c := valid(t, p.where, configurations[file], p.env)
		u := users[c.Bus.User]
		if u == nil || u.Password != string(c.Bus.Password) {
			t.Errorf("%s is the user %s of the bus, whose password it has not", p.where, c.Bus.User)
			continue
		}
		checkGrants(t, p, u)
	}
	if len(all) != len(want) {
		t.Errorf("%d processes, and %d are known", len(all), len(want))
	}
	// One process alone has no secret; the user of one that has all roles is none of these.
	for _, p := range ofKubernetes(t, "deploy/kubernetes/single.yaml") {
		if len(p.secrets) > 0 {
			t.Errorf("%s gets %v", p.where, p.secrets)
		}
	}
}

// checkGrants compares what a process does with what the user of the bus may do that it is.
func checkGrants(t *testing.T, p deployed, u *natsserver.User) {
	t.Helper()
	if p.command == "[bus setup --user admin]" || p.command == "[backup]" {
		if u.Permissions != nil {
			t.Errorf("%s: %s makes or reads all streams, and %s may not", p.where, p.command, u.Username)
		}
		return
	}
	if u.Permissions == nil {
		t.Errorf("%s: %s may do everything on the bus", p.where, u.Username)
		return
	}
	publish, subscribe := u.Permissions.Publish, u.Permissions.Subscribe
	roles := strings.Split(p.env["BELFRY_ROLE"], ",")
	for _, listener := range plan.BuiltIn {
		has := slices.Contains(roles, plan.RoleOf(listener))
		subjects := []string{"$JS.API.CONSUMER.MSG.NEXT.EVENTS." + listener, "$JS.ACK.EVENTS." + listener + ".1",
			"$JS.API.CONSUMER.MSG.NEXT.RETRY." + listener, "$JS.ACK.RETRY." + listener + ".1", "dead." + listener}
		if listener == event.OriginCopy {
			subjects = append(subjects, "retry."+listener)
		}
		for _, subject := range subjects {
			if may(publish, subject) != has {
				t.Errorf("%s: its role has %s: %v, and %s may publish %s: %v", p.where, listener, has, u.Username,
					subject, !has)
			}
		}
	}
	for role, subject := range map[string]string{"front": "store.Books.save", "search": "search.Books",
		"mapping": "mapping.workers.x"} {
		if has := slices.Contains(roles, role); may(subscribe, subject) != has {
			t.Errorf("%s: its role has %s: %v, and %s may receive %s: %v", p.where, role, has, u.Username, subject,
				!has)
		}
	}
	for _, subject := range []string{"$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.UPDATE.EVENTS",
		"$JS.API.STREAM.PURGE.EVENTS", "$JS.API.CONSUMER.CREATE.EVENTS.x", "$JS.API.CONSUMER.DELETE.EVENTS.mapping",
		"$JS.API.DIRECT.GET.DEAD"} {
		if may(publish, subject) {
			t.Errorf("%s: %s may publish %s", p.where, u.Username, subject)
		}
	}
}

// From outside a request comes by TLS, through the Ingress, with the address of its client; what serves no requests
// gets none.
func TestManifestsLetInWhatTheIngressSends(t *testing.T) {
	env := map[string]string{"BELFRY_BUS_USER": "front", "BELFRY_BUS_PASSWORD": "p",
		"MONGODB_URL": "mongodb://mongodb:27017"}
	for file, reached := range map[string][]int{"deploy/kubernetes/single.yaml": {443},
		"deploy/kubernetes/cluster.yaml": {443, 4222, 27017}} {
		kinds := map[string][]map[string]any{}
		for _, d := range documents(t, file) {
			kinds[d["kind"].(string)] = append(kinds[d["kind"].(string)], d)
		}
		c := valid(t, file, at(kinds["ConfigMap"][0], "data", "belfry.yaml").(string), env)
		base, err := url.Parse(c.BaseURL)
		if err != nil {
			t.Fatal(err)
		}
		if len(kinds["Ingress"]) != 1 || len(kinds["Service"]) != 1 {
			t.Fatalf("%s has %d ingresses, %d services", file, len(kinds["Ingress"]), len(kinds["Service"]))
		}
		ingress, service := kinds["Ingress"][0], kinds["Service"][0]
		if base.Scheme != "https" || base.Host != at(ingress, "spec", "rules", 0, "host") ||
			base.Host != at(ingress, "spec", "tls", 0, "hosts", 0) ||
			at(ingress, "spec", "tls", 0, "secretName") == nil {
			t.Errorf("%s: clients use %s, and the ingress has %v", file, c.BaseURL, at(ingress, "spec"))
		}
		if len(c.Proxies) == 0 {
			t.Errorf("%s: all clients have the address of the ingress: no proxies are trusted", file)
		}
		backend := at(ingress, "spec", "rules", 0, "http", "paths", 0, "backend", "service")
		if at(backend, "name") != at(service, "metadata", "name") ||
			at(backend, "port", "name") != at(service, "spec", "ports", 0, "name") {
			t.Errorf("%s: the ingress sends to %v", file, backend)
		}
		fronts := 0
		for _, kind := range []string{"StatefulSet", "Deployment", "Job", "CronJob"} {
			for _, d := range kinds[kind] {
				_, labels := podOf(d)
				where := fmt.Sprintf("%s: %v", file, at(d, "metadata", "name"))
				in, out := portsOf(kinds["NetworkPolicy"], labels)
				want := []int{9464}
				if selects(at(service, "spec", "selector"), labels) {
					fronts++
					want = []int{8080, 9464}
				}
				if !slices.Equal(in, want) {
					t.Errorf("%s is open at %v, and serves %v", where, in, want)
				}
				for _, port := range append([]int{53}, reached...) {
					if !slices.Contains(out, port) {
						t.Errorf("%s can't reach port %d of others: %v", where, port, out)
					}
				}
			}
		}
		if fronts != 1 {
			t.Errorf("%s: the service selects %d kinds of pods", file, fronts)
		}
	}
}

// selects reports whether all labels of a selector are among those of a pod.
func selects(selector any, labels map[string]any) bool {
	wanted, _ := selector.(map[string]any)
	for key, value := range wanted {
		if labels[key] != value {
			return false
		}
	}
	return wanted != nil
}

// portsOf returns the ports at which policies let others reach a pod, and at which it may reach others. -1 is every
// port, of a direction that no policy is about, or of a rule for anybody.
func portsOf(policies []map[string]any, labels map[string]any) (in, out []int) {
	ports := func(direction, rules, peers string) (all []int) {
		restricted := false
		for _, p := range policies {
			types, _ := at(p, "spec", "policyTypes").([]any)
			if !selects(at(p, "spec", "podSelector", "matchLabels"), labels) ||
				!slices.Contains(types, any(direction)) {
				continue
			}
			restricted = true
			list, _ := at(p, "spec", rules).([]any)
			for _, rule := range list {
				named, _ := at(rule, "ports").([]any)
				if named == nil || direction == "Ingress" && at(rule, peers) == nil {
					all = append(all, -1)
				}
				for _, port := range named {
					number, _ := at(port, "port").(int)
					all = append(all, number)
				}
			}
		}
		if !restricted {
			all = append(all, -1)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	return ports("Ingress", "ingress", "from"), ports("Egress", "egress", "to")
}

// Each deployment makes backups by itself: by a schedule where the process may read all that it needs, else by a job.
func TestManifestsMakeBackups(t *testing.T) {
	env := map[string]string{"BELFRY_BUS_USER": "front", "BELFRY_BUS_PASSWORD": "p", "MONGODB_URL": "mongodb://mongodb:27017"}
	for file, byJob := range map[string]bool{"deploy/kubernetes/single.yaml": false,
		"deploy/kubernetes/cluster.yaml": true} {
		jobs, mounted := 0, false
		var text string
		for _, d := range documents(t, file) {
			if found, ok := at(d, "data", "belfry.yaml").(string); ok {
				text = found
			}
			pod, _ := podOf(d)
			if d["kind"] == "CronJob" && fmt.Sprint(at(pod, "containers", 0, "args")) == "[backup]" &&
				at(d, "spec", "schedule") != nil && at(d, "spec", "concurrencyPolicy") == "Forbid" {
				jobs++
			}
			mounts, _ := at(pod, "containers", 0, "volumeMounts").([]any)
			mounted = mounted ||
				slices.ContainsFunc(mounts, func(m any) bool { return at(m, "mountPath") == "/backup" })
		}
		c := valid(t, file, text, env)
		if c.Backup == nil {
			t.Errorf("%s has no place for backups", file)
			continue
		}
		if scheduled := c.Backup.Schedule != (schedule.Schedule{}); scheduled == byJob ||
			jobs != map[bool]int{true: 1}[byJob] {
			t.Errorf("%s: backups by a schedule: %v, and by %d jobs", file, scheduled, jobs)
		}
		if c.Backup.S3 == nil && (c.Backup.Folder != "/backup" || !mounted) {
			t.Errorf("%s: backups are in %s, which is no volume", file, c.Backup.Folder)
		}
	}
}
