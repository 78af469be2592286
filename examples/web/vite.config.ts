import { defineConfig } from 'vite'

// In development Vite serves the application and passes everything else on to belfry, so that the
// browser sees one origin, as in production.
const belfry = { target: 'http://localhost:8080' }

export default defineConfig({
  server: { proxy: { '/auth': belfry, '/notes': belfry, '/binary': belfry, '/events': belfry } },
})
