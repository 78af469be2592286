package mailers

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/app/serving"
	"belfry/pkg/mail"
)

// A link is a secret. It is in the log only of a belfry that nobody but programs on its machine can reach.
func TestLinksOfMailsAreLoggedDuringDevelopmentAlone(t *testing.T) {
	const link = "http://localhost:1/auth/email/callback?login=ada%40example.com&token=0123456789"
	for text, logged := range map[string]bool{
		"":                                 true,
		"baseURL: http://localhost:9999":   true,
		"baseURL: https://app.example.org": false,
		"baseURL: http://192.168.1.5:8080": false,
	} {
		c, err := config.Parse("belfry.yaml", []byte("data: "+t.TempDir()+"\n"+text),
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		g := serving.NewGeneration(c, nil)
		g.Address = "127.0.0.1:1"
		mailers := New(serving.NewCurrent(g), slog.New(slog.NewTextHandler(&log, nil)), serving.NewMetrics())
		m := mail.Message{ID: "1", From: "a@example.com", To: "ada@example.com", Subject: "s", Text: link, Link: link}
		if err := mailers.Sender(g, "default").Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), `link="`+link+`"`); got != logged ||
			!strings.Contains(log.String(), ".eml") || strings.Contains(log.String(), "0123456789") != logged {
			t.Errorf("%s: %s", text, log.String())
		}
	}
}
