package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"belfry/test/mailbox"
)

// The command prints what the mail server replies, and fails if that refuses.
func TestMailTest(t *testing.T) {
	server := mailbox.Start(t, mailbox.Login("belfry", "correct horse"))
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	secret := filepath.Join(filepath.Dir(file), "password")
	for name, content := range map[string]string{
		file: fmt.Sprintf("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nauthentication: {providers: {email: {from: "+
			"bells@example.com}}}\nmailers: {default: {type: smtp, host: %s, port: %d, tls: none, user: belfry, "+
			"password: \"${file:%s}\"}}\n", server.Host, server.Port, secret),
		secret: "hunter22\n",
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	belfry(t, 2, "<address>", "mail", "test", "-c", file)
	belfry(t, 2, "expected the address to which the mail is sent", "mail", "test", "ada", "-c", file)
	belfry(t, 2, `no mailer "other" is configured`, "mail", "test", "ada@example.com", "--mailer", "other", "-c", file)
	belfry(t, 1, "logging in was refused: 535 5.7.8: check user and password of the mail server", "mail", "test",
		"ada@example.com", "-c", file)

	serving(t, file)
	belfry(t, 1, "logging in was refused: 535 5.7.8", "mail", "test", "ada@example.com", "-c", file)
	if err := os.WriteFile(secret, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The belfry that serves has not read it.
	belfry(t, 1, "logging in was refused: 535 5.7.8", "mail", "test", "ada@example.com", "-c", file)
	belfry(t, 0, "reloaded; these keys changed:\n  mailers.default.password\n", "reload", "-c", file)
	belfry(t, 0, "has accepted the mail to ada@example.com (mailer default, from bells@example.com)", "mail", "test",
		"ada@example.com", "-c", file)
	belfry(t, 0, `"served":true`, "mail", "test", "ada@example.com", "--json", "-c", file)
	server.Await(t, "ada@example.com", 2)
}
