package backends

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"belfry/test/kit"
	"belfry/test/kit/natsserver"
	"belfry/test/process"
)

// A warning is for what somebody has to do something about. There is nothing at the first start on an empty backend, of
// one process or of several with other roles, after a reload, and at a start after that.
func TestStartsWithoutAReasonToWarnHaveNoWarning(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]func() string{
		"MongoDB":  func() string { return mongoDatabase("warnings") },
		"DynamoDB": func() string { return dynamo(servers.dynalite()) },
	} {
		t.Run(name, func(t *testing.T) {
			bus := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
			file := write(t, t.TempDir(), "belfry.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
baseURL: http://localhost:8080
bus: {url: %q}
backends: {default: %s}
stores:
  Users: {expose: {}}
  Parents: {uuid: client, expose: {}, unique: [slug], policy: {create: "true", get: "true", update: "false", delete: "false"}}
  Children: {uuid: client, expose: {}, policy: {create: "true", get: "true", update: "false", delete: "false"}, map: {Parents: {key: parent, target: children, fields: title}}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`, bus, backend()))
			quiet := func(when string, all ...*process.Server) {
				t.Helper()
				for _, s := range all {
					for line := range strings.Lines(s.Log()) {
						if strings.Contains(line, "mails are written into a folder") {
							continue // as configured
						}
						if strings.Contains(line, "WARN") || strings.Contains(line, "ERROR") {
							t.Errorf("%s: %s", when, line)
						}
					}
				}
			}
			works := func(front *process.Server, uuid string) {
				t.Helper()
				must(t, front, 201, "POST", "/parents", fmt.Sprintf(`{"uuid":%q,"slug":%q}`, uuid, uuid))
				must(t, front, 201, "POST", "/children", fmt.Sprintf(`{"uuid":%q,"parent":%q,"title":"T"}`, uuid, uuid))
				kit.WaitFor(t, "the array has its entry", func() bool {
					return must(t, front, 200, "GET", "/parents/"+uuid, "").get("children.0.title") == "T"
				})
			}
			stop := func(all ...*process.Server) {
				t.Helper()
				for _, s := range all {
					if err := s.Stop(); err != nil {
						t.Error(err)
					}
				}
			}
			own := [2]string{t.TempDir(), t.TempDir()}
			front := process.ServePlain(t, file, "--role", "front", "--data", own[0])
			worker := process.ServePlain(t, file, "--role", "mapping,cascade,mail,sweep,search", "--data", own[1])
			works(front, "one")
			quiet("two processes, first start", front, worker)
			if _, stderr, exit, err := process.Run(process.Commands(t), "reload", "--config", file, "--data",
				own[0]); exit != 0 || err != nil {
				t.Errorf("reload: %d, %v, %s", exit, err, stderr)
			}
			works(front, "two")
			stop(front, worker)
			quiet("after a reload and a stop", front, worker)

			one := process.ServePlain(t, file, "--data", own[0])
			works(one, "three")
			stop(one)
			quiet("one process with the same data", one)
		})
	}
}
