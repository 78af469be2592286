package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"

	"belfry/config"
	"belfry/pkg/app/plan"
)

// Nothing here starts a container. The files are read as their tools read them, and what they say of belfry, of the
// image and of each other is compared with what these are.

// documents reads the YAML documents of a file.
func documents(t *testing.T, name string) []map[string]any {
	t.Helper()
	var all []map[string]any
	decoder := yaml.NewDecoder(strings.NewReader(read(t, name)))
	for {
		var one map[string]any
		err := decoder.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
}

// at returns what is at a path of keys and indexes; nil if there is nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, _ := value.(map[string]any)
			value = m[step]
		case int:
			l, _ := value.([]any)
			if step >= len(l) {
				return nil
			}
			value = l[step]
		}
	}
	return value
}

func TestEveryFileForDeploymentIsYAML(t *testing.T) {
	files := []string{"compose.yaml", ".goreleaser.yaml"}
	for _, folder := range []string{"deploy", "docs/deploy"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".yaml" {
				name, _ := filepath.Rel(root, path)
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range files {
		if len(documents(t, name)) == 0 {
			t.Errorf("%s is empty", name)
		}
	}
	if len(files) < 8 {
		t.Errorf("only %v", files)
	}
}

// valid checks a configuration with the environment that it is run with.
func valid(t *testing.T, name, text string, env map[string]string) *config.Config {
	t.Helper()
	c, err := config.Parse(filepath.Join(t.TempDir(), "belfry.yaml"), []byte(text), func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	if err == nil {
		err = plan.Check(c)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func TestTheConfigurationOfTheImageIsValid(t *testing.T) {
	valid(t, "deploy/belfry.yaml", read(t, "deploy/belfry.yaml"), nil)
}

func TestTheProcessesOfTheClusterHaveWhatTheirRolesNeed(t *testing.T) {
	compose := documents(t, "deploy/cluster/compose.yaml")[0]
	services := compose["services"].(map[string]any)
	roles := map[string]int{}
	for _, name := range []string{"front-1", "front-2", "worker-1", "worker-2"} {
		env := map[string]string{}
		for key, value := range at(services[name], "environment").(map[string]any) {
			env[key] = interpolate(fmt.Sprint(value))
		}
		c := valid(t, name, read(t, "deploy/cluster/belfry.yaml"), env)
		if len(c.Bus.URL) != 3 || c.Bus.Replicas != 3 || c.Backends["default"].MongoDB == nil ||
			c.Binaries["files"].S3 == nil {
			t.Errorf("%s: roles need a bus, a backend and a storage that processes share: %+v", name, c.Bus)
		}
		for role := range strings.SplitSeq(env["BELFRY_ROLE"], ",") {
			roles[role]++
		}
		subnet := at(compose, "networks", "default", "ipam", "config", 0, "subnet")
		if len(c.Proxies) != 1 || c.Proxies[0].String() != subnet {
			t.Errorf("%s trusts %v, and the proxy is in %v", name, c.Proxies, subnet)
		}
	}
	for _, role := range []string{"front", "mapping", "cascade", "mail", "sweep"} {
		if roles[role] != 2 {
			t.Errorf("%d processes have the role %s", roles[role], role)
		}
	}
	if setup := at(services["setup"], "command"); fmt.Sprint(setup) != "[bus setup --user admin]" {
		t.Errorf("setup runs %v", setup)
	}
}

var variable = regexp.MustCompile(`\$\{([A-Z0-9_]+)(:-([^}]*)|:\?[^}]*)?\}`)

// interpolate replaces variables as Compose does, by values of the test where there are no defaults.
func interpolate(text string) string {
	return variable.ReplaceAllStringFunc(text, func(found string) string {
		m := variable.FindStringSubmatch(found)
		if strings.HasPrefix(m[2], ":-") {
			return m[3]
		}
		return "p-of-" + m[1]
	})
}

func TestTheServicesOfComposeFitTogether(t *testing.T) {
	_, i := parse(t, read(t, "Dockerfile"))
	for _, file := range []string{"compose.yaml", "deploy/cluster/compose.yaml"} {
		compose := documents(t, file)[0]
		services := compose["services"].(map[string]any)
		for name, service := range services {
			if dependencies, ok := at(service, "depends_on").(map[string]any); ok {
				for other, condition := range dependencies {
					switch at(condition, "condition") {
					case "service_healthy":
						if at(services[other], "image") != "belfry" && at(services[other], "healthcheck") == nil {
							t.Errorf("%s: %s waits for the health of %s, which has no check", file, name, other)
						}
					case "service_completed_successfully":
						if restart := at(services[other], "restart"); restart == "unless-stopped" ||
							restart == "always" {
							t.Errorf("%s: %s waits for the end of %s, which is restarted", file, name, other)
						}
					}
					if services[other] == nil {
						t.Errorf("%s: %s depends on %s, which does not exist", file, name, other)
					}
				}
			}
			mounts, _ := at(service, "volumes").([]any)
			for _, mount := range mounts {
				source, _, _ := strings.Cut(mount.(string), ":")
				if strings.HasPrefix(source, ".") {
					if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), source)); err != nil {
						t.Errorf("%s: %s mounts %v", file, name, err)
					}
				} else if volumes, _ := compose["volumes"].(map[string]any); !slices.Contains(slices.Collect(
					maps.Keys(volumes)), source) {
					t.Errorf("%s: %s mounts the volume %s, which is not declared", file, name, source)
				}
			}
			ports, _ := at(service, "ports").([]any)
			for _, port := range ports {
				if !strings.HasPrefix(port.(string), "127.0.0.1:") {
					t.Errorf("%s: %s is open to other machines, without TLS: %v", file, name, port)
				}
			}
			if at(service, "image") == "belfry" && at(service, "read_only") != true {
				t.Errorf("%s: the root of %s can be written", file, name)
			}
		}
	}
	data := at(documents(t, "deploy/cluster/compose.yaml")[0], "services", "front-1", "tmpfs", 0)
	if user, _, _ := strings.Cut(i.user, ":"); !strings.HasPrefix(fmt.Sprint(data), i.volumes[0]+":uid="+user+",") {
		t.Errorf("the data folder of the fronts is %v, and the user of the image %s", data, i.user)
	}
}

// The server reads the file, with what it includes, and has the users that the processes name.
func TestTheServersOfTheClusterFindEachOther(t *testing.T) {
	folder := t.TempDir()
	for from, to := range map[string]string{"nats.conf": "nats.conf", "deploy/cluster/nats.conf": "cluster.conf"} {
		if err := os.WriteFile(filepath.Join(folder, to), []byte(read(t, from)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	services := documents(t, "deploy/cluster/compose.yaml")[0]["services"].(map[string]any)
	names := map[string]bool{}
	for _, name := range []string{"nats-1", "nats-2", "nats-3"} {
		for key, value := range at(services[name], "environment").(map[string]any) {
			t.Setenv(key, interpolate(fmt.Sprint(value)))
		}
		o, err := natsserver.ProcessConfigFile(filepath.Join(folder, "cluster.conf"))
		if err != nil {
			t.Fatal(err)
		}
		names[o.ServerName] = true
		if o.Cluster.Name != "belfry" || len(o.Routes) != 3 || !o.JetStream || !o.SyncAlways || o.StoreDir != "/data" {
			t.Errorf("%s: %+v, routes %v", name, o.Cluster, o.Routes)
		}
		for _, route := range o.Routes {
			host := route.Hostname()
			if password, _ := route.User.Password(); services[host] == nil ||
				route.User.Username() != o.Cluster.Username || password != o.Cluster.Password {
				t.Errorf("%s: the route %s", name, route.Redacted())
			}
		}
		for _, user := range []string{"front", "worker", "admin"} {
			if !slices.ContainsFunc(o.Users, func(u *natsserver.User) bool { return u.Username == user }) {
				t.Errorf("%s has no user %s", name, user)
			}
		}
	}
	if len(names) != 3 {
		t.Errorf("the servers are called %v", names)
	}
}

// docs/guides/deploy-cluster.md makes .env by a command: it has each variable that has no default.
func TestTheDocumentationMakesTheEnvironmentOfTheCluster(t *testing.T) {
	page := read(t, "docs/guides/deploy-cluster.md")
	loop := regexp.MustCompile(`for user in ([A-Z ]+); do echo "BELFRY_\$\{user\}_PASSWORD=`).FindStringSubmatch(page)
	if loop == nil {
		t.Fatal("docs/guides/deploy-cluster.md does not make .env")
	}
	var made []string
	for user := range strings.FieldsSeq(loop[1]) {
		made = append(made, "BELFRY_"+user+"_PASSWORD")
	}
	made = append(made, "S3_USER", "S3_PASSWORD")
	for _, m := range regexp.MustCompile(`\$\{([A-Z0-9_]+):\?`).FindAllStringSubmatch(read(t,
		"deploy/cluster/compose.yaml"), -1) {
		if !slices.Contains(made, m[1]) {
			t.Errorf("docs/guides/deploy-cluster.md does not make %s", m[1])
		}
	}
}

// Probes mean what they say: a restart is for a process that is not alive, requests are for one that is ready.
func TestManifestsAskTheRightQuestions(t *testing.T) {
	_, i := parse(t, read(t, "Dockerfile"))
	served := 0
	for _, file := range []string{"deploy/kubernetes/single.yaml", "deploy/kubernetes/cluster.yaml"} {
		for _, d := range documents(t, file) {
			where := fmt.Sprintf("%s: %v %v", file, d["kind"], at(d, "metadata", "name"))
			if text, ok := at(d, "data", "belfry.yaml").(string); ok {
				c := valid(t, where,
					text, map[string]string{"BELFRY_BUS_USER": "front", "BELFRY_BUS_PASSWORD": "p",
						"MONGODB_URL": "mongodb://mongodb"})
				if c.Data != i.volumes[0] || c.Listen != ":8080" {
					t.Errorf("%s: %s, %s", where, c.Listen, c.Data)
				}
			}
			pod, _ := podOf(d)
			if pod == nil {
				continue
			}
			user, group := ids(t, i.user)[0], ids(t, i.user)[1]
			if s := at(pod, "securityContext"); at(s, "runAsNonRoot") != true || at(s, "runAsUser") != user ||
				at(s, "runAsGroup") != group {
				t.Errorf("%s runs as %v, and the image as %s", where, s, i.user)
			}
			container := at(pod, "containers", 0)
			if s := at(container, "securityContext"); at(s, "readOnlyRootFilesystem") != true ||
				at(s, "allowPrivilegeEscalation") != false {
				t.Errorf("%s: %v", where, s)
			}
			checkMounts(t, where, pod, d)
			if d["kind"] == "Job" || d["kind"] == "CronJob" {
				continue
			}
			served++
			for probe, path := range map[string]string{"startupProbe": "/livez", "livenessProbe": "/livez",
				"readinessProbe": "/readyz"} {
				if at(container, probe, "httpGet", "path") != path ||
					at(container, probe, "httpGet", "port") != at(container, "ports", 0, "name") {
					t.Errorf("%s: the %s asks %v", where, probe, at(container, probe))
				}
			}
			const shutdown = 30 // seconds, the default of shutdownTimeout
			sleep, _ := at(container, "lifecycle", "preStop", "sleep", "seconds").(int)
			if grace, _ := at(pod, "terminationGracePeriodSeconds").(int); grace < shutdown+sleep+5 {
				t.Errorf("%s: is killed after %d seconds, while it may still stop", where, grace)
			}
			if fmt.Sprint(at(d, "spec", "selector", "matchLabels")) != fmt.Sprint(at(d, "spec", "template", "metadata",
				"labels")) {
				t.Errorf("%s: does not select its own pods", where)
			}
		}
	}
	if served != 3 {
		t.Errorf("%d kinds of pods serve", served)
	}
}

// checkMounts compares what a container mounts with what the pod has, and with the image.
func checkMounts(t *testing.T, where string, pod any, manifest map[string]any) {
	t.Helper()
	var names []string
	volumes, _ := at(pod, "volumes").([]any)
	claims, _ := at(manifest, "spec", "volumeClaimTemplates").([]any)
	for _, v := range volumes {
		names = append(names, at(v, "name").(string))
	}
	for _, c := range claims {
		names = append(names, at(c, "metadata", "name").(string))
	}
	mounts, _ := at(pod, "containers", 0, "volumeMounts").([]any)
	for _, m := range mounts {
		if !slices.Contains(names, at(m, "name").(string)) {
			t.Errorf("%s: no volume for %v", where, m)
		}
		// The folder of backups is a volume of its own, which the image needs not have: TestManifestsMakeBackups.
		if path := at(m, "mountPath"); path != "/etc/belfry" && path != "/data" && path != "/backup" {
			t.Errorf("%s: the image has no %v", where, path)
		}
	}
}

func TestReleasesAreBuiltAsByMake(t *testing.T) {
	release := documents(t, ".goreleaser.yaml")[0]
	build := at(release, "builds", 0)
	cold := regexp.MustCompile(`(?m)^COLD +:= ((?:.*\\\n)*.*)$`).FindStringSubmatch(read(t, "Makefile"))
	if cold == nil {
		t.Fatal("the Makefile has no COLD")
	}
	var want []any
	for name := range strings.FieldsSeq(strings.ReplaceAll(cold[1], "\\\n", " ")) {
		want = append(want, name+"/...=-l")
	}
	if got := at(build, "gcflags"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("gcflags are %v, and those of make %v", got, want)
	}
	if fmt.Sprint(at(build, "ldflags")) != "[-s -w]" || fmt.Sprint(at(build, "env")) != "[CGO_ENABLED=0]" ||
		!strings.Contains(fmt.Sprint(at(build, "flags")), "-trimpath") {
		t.Errorf("%v", build)
	}
	for _, pattern := range at(release, "archives", 0, "files").([]any) {
		if found, err := filepath.Glob(filepath.Join(root,
			strings.ReplaceAll(pattern.(string), "**/", ""))); err != nil || len(found) == 0 {
			t.Errorf("no files are %v", pattern)
		}
	}
}

func TestTheServiceIsAllowedToStop(t *testing.T) {
	unit := read(t, "deploy/belfry.service")
	for _, line := range []string{
		"ExecStart=/usr/local/bin/belfry serve --config /etc/belfry/belfry.yaml", "ExecReload=/bin/kill -HUP $MAINPID",
		"Restart=always", "RestartPreventExitStatus=2", "TimeoutStopSec=45", "DynamicUser=yes", "StateDirectory=belfry",
		"Environment=BELFRY_DATA=/var/lib/belfry", "ProtectSystem=strict", "NoNewPrivileges=yes",
	} {
		if !strings.Contains(unit, "\n"+line+"\n") {
			t.Errorf("deploy/belfry.service has no %s", line)
		}
	}
}
