// Package image runs what the Dockerfile makes, without a container tool: the program alone in a root of its own, as
// the image's user, with the image's environment.
package image

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// image is what the last stage of the Dockerfile says.
type image struct {
	files      []copied
	env        []string
	user       string
	entrypoint []string
	command    []string
	health     []string
	volumes    []string
	ports      []string
}

// copied is a COPY of one file or folder: from a path in the stage of the build, to one in the image.
type copied struct {
	from, to, owner string
}

// parse reads the instructions of a Dockerfile that belfry's uses, and no others.
func parse(t *testing.T, text string) (build []string, last image) {
	t.Helper()
	text = strings.ReplaceAll(text, "\\\n", " ")
	stage := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		instruction, rest, _ := strings.Cut(line, " ")
		if instruction == "FROM" {
			stage++
			if stage == 2 && rest != "scratch" {
				t.Fatalf("the image is from %s, not from scratch: it has what this test does not know", rest)
			}
			continue
		}
		if stage == 1 {
			build = append(build, line)
			continue
		}
		switch instruction {
		case "COPY":
			last.files = append(last.files, copies(t, rest)...)
		case "ENV":
			last.env = append(last.env, strings.Fields(rest)...)
		case "USER":
			last.user = rest
		case "VOLUME":
			last.volumes = append(last.volumes, rest)
		case "EXPOSE":
			last.ports = append(last.ports, rest)
		case "ENTRYPOINT":
			last.entrypoint = list(t, rest)
		case "CMD":
			last.command = list(t, rest)
		case "HEALTHCHECK":
			_, command, ok := strings.Cut(rest, " CMD ")
			if !ok {
				t.Fatalf("a health check without a command: %s", line)
			}
			last.health = list(t, command)
		case "STOPSIGNAL":
			if rest != "SIGTERM" {
				t.Errorf("belfry stops gracefully on SIGTERM, not on %s", rest)
			}
		default:
			t.Fatalf("an instruction that this test does not know: %s", line)
		}
	}
	return build, last
}

func copies(t *testing.T, text string) []copied {
	t.Helper()
	owner, fromBuild := "", false
	var paths []string
	for word := range strings.FieldsSeq(text) {
		switch {
		case word == "--from=build":
			fromBuild = true
		case strings.HasPrefix(word, "--chown="):
			owner = strings.TrimPrefix(word, "--chown=")
		case strings.HasPrefix(word, "--"):
			t.Fatalf("a flag of COPY that this test does not know: %s", word)
		default:
			paths = append(paths, word)
		}
	}
	if !fromBuild || len(paths) < 2 {
		t.Fatalf("a COPY that this test does not know: %s", text)
	}
	var all []copied
	to := paths[len(paths)-1]
	for _, from := range paths[:len(paths)-1] {
		target := to
		if strings.HasSuffix(to, "/") {
			target = to + filepath.Base(from)
		}
		all = append(all, copied{from, target, owner})
	}
	return all
}

func list(t *testing.T, text string) []string {
	t.Helper()
	var all []string
	if err := json.Unmarshal([]byte(text), &all); err != nil || len(all) == 0 {
		t.Fatalf("not a list of words, and there is no shell: %s", text)
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
