package config

import (
	"os"
	"strings"
	"testing"
)

func TestDevelopmentIsForLoopback(t *testing.T) {
	for setting, want := range map[string]string{
		"listen: 0.0.0.0:8080": "listen: ", "listen: 192.0.2.1:8080": "listen: ", "listen: :8080": "listen: ",
		"baseURL: https://app.example.com": "baseURL: ", "hosts: [app.example.com]": "hosts: ",
		"proxies: [127.0.0.1]":   "proxies: ",
		"listen: 127.0.0.1:8080": "", `listen: "[::1]:8080"`: "", "listen: localhost:8080": "",
		"baseURL: http://localhost:8080": "",
	} {
		c, err := Parse("belfry.yaml", []byte("development: true\n"+setting), os.LookupEnv)
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want a problem of %s", setting, err, want)
		case want == "" && err != nil:
			t.Errorf("%s: %v", setting, err)
		case err == nil && c.Override("0.0.0.0:8080", "") == nil:
			t.Errorf("%s: --listen 0.0.0.0:8080 is accepted", setting)
		}
	}
}
