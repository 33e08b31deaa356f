/**
 * An API that streams its answers and runs as several processes. Over all processes, a customer can send LIMIT requests
 * a minute, and read two answers at a time.
 *
 *     REDIS_URL=redis://localhost PORT=8080 node api-limits.js
 *     curl -i -H 'X-Customer: anna' localhost:8080/answers
 */
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { stream } from 'hono/streaming'
import { open } from 'signalbox'
import { problemOf } from 'signalbox/http'
import { limitHono } from 'signalbox/limits/http'

const { REDIS_URL = 'redis://localhost', PORT = '8080', LIMIT = '60' } = process.env

const box = await open(REDIS_URL)
const customers = box.limiter('customers', { limit: Number(LIMIT), per: '1m', concurrency: 2 })
const model = box.limiter('model', { limit: 20, per: '1s', concurrency: 10 })

const app = new Hono()
app.use(limitHono(customers, { name: 'customer', key: c => c.req.header('X-Customer') ?? 'anonymous' }))

app.get('/answers', c =>
  stream(c, async out => {
    for (let word = 1; word <= 5; word++) {
      // All customers share the limits of the model. The signal ends the wait if the customer disconnects.
      await model.run(() => out.writeln(`word ${word}`), 1, { signal: c.req.raw.signal })
      await out.sleep(100)
    }
  }),
)

app.onError(error => {
  const problem = problemOf(error)
  if (!problem) throw error
  return new Response(JSON.stringify(problem.document), { status: problem.status, headers: problem.headers })
})

const server = serve({ fetch: app.fetch, port: Number(PORT) }, () => console.log(`listening on ${PORT}`))

process.once('SIGTERM', () => {
  server.close(() => void box.close())
})
