import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Hono } from 'hono'
import { expect, test, vi } from 'vitest'
import { limitHono } from '../../src/limits/http/index.js'
import { limiter } from '../../src/limits/index.js'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

test('a response of Hono that other middleware has replaced releases its permit when it is collected', async () => {
  const own = limiter({ limit: 100, per: '1h', concurrency: 5 })
  const app = new Hono()
  app.use(async (_context, next) => {
    await next()
    throw new Error('of outer middleware')
  })
  app.use(limitHono(own))
  app.get('/', context => context.text('dropped'))
  app.onError((error, context) => context.text(error.message, 500))
  for (let call = 0; call < 3; call++) {
    expect(await (await app.request('/')).text()).toBe('of outer middleware')
  }
  expect(own.explain().running).toBe(3)
  await vi.waitFor(
    () => {
      collect()
      expect(own.explain().running).toBe(0)
    },
    { timeout: 5000 },
  )
})
