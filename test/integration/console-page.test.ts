import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type axe from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { soFar } from '../../packages/conformance/src/time.js'
import type { Box } from '../../src/index.js'
import { RedisPlace } from '../support/redis/place.js'
import { CommandPlace, PATIENCE } from './command-line.js'
import { startConsole } from './console-place.js'

/** Path of the screenshot for packages/console/README.md, docs/console.png; undefined if none is wanted. */
const picture = process.env['SIGNALBOX_CONSOLE_PICTURE']

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
afterAll(() => browser.close())

/** Messages on the browser's console. None are expected. */
let said: string[]
beforeEach(() => {
  said = []
})
afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
  // The browser reports each attempt to connect to a closed console, and each rejected request.
  expect(said.filter(text => !/net::ERR_|with a status of/.test(text))).toEqual([])
})

type Look = Parameters<Browser['newPage']>[0]

async function pageAt(address: string, look: Look = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...look })
  page.setDefaultTimeout(PATIENCE.timeout)
  page.on('console', message => said.push(message.text()))
  page.on('pageerror', error => said.push(error.message))
  await page.goto(address)
  return page
}

/** Waits until the page shows this text in an element. */
async function shows(page: Page, selector: string, text: string | RegExp): Promise<void> {
  await page.locator(selector, { hasText: text }).first().waitFor()
}

async function press(page: Page, ...keys: readonly string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key)
}

/** Returns the promise of a waiter, with its rejection handled. */
function waiting<T>(wait: Promise<T>): Promise<T> {
  wait.catch(() => undefined)
  return wait
}

/** Returns the findings of an accessibility check. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axeSource)
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
  return violations.map(
    ({ id, nodes }) => `${new URL(page.url()).hash} ${id}: ${nodes.map(({ html }) => html).join(' ')}`,
  )
}

test('a waiter appears and goes, and the address of a view leads back to it', async () => {
  await using place = new CommandPlace()
  const [holder, waiter] = [await place.box('billing'), await place.box('report')]
  const grant = await holder.mutex('invoice:42').acquire()
  const { address } = await startConsole(place)
  const page = await pageAt(address)
  await shows(page, '.lock .name', 'billing')
  expect(page.url()).not.toContain('secret')
  const stop = new AbortController()
  const wait = waiting(waiter.mutex('invoice:42').acquire({ signal: stop.signal }))
  await shows(page, '.lock .waiting', '1')
  await page.locator('.lock .key', { hasText: 'invoice:42' }).click()
  await shows(page, '.waiter .name', 'report')
  const key = page.url()
  stop.abort()
  await expect(wait).rejects.toThrow()
  await page.locator('.waiter').waitFor({ state: 'detached' })
  await shows(page, '.timeline', 'report')
  await grant.release()
  await shows(page, '.timeline', /released it after|released it/)
  await shows(page, '.summary', 'No holders, no waiters')
  // A reload keeps the secret, which is not in the address.
  await page.goto(`${new URL(key).origin}/${new URL(key).hash}`)
  await page.reload()
  await shows(page, 'h1', 'invoice:42')
  await shows(page, '.timeline', 'report')
  // Another window does not have the secret.
  const other = await pageAt(key)
  await shows(other, 'h1', 'You are not signed in')
})

test('with the keyboard alone, somebody finds who is in the way, and frees the lock', async () => {
  await using place = new CommandPlace()
  const [holder, waiter] = [await place.box('stuck'), await place.box('next')]
  for (let index = 0; index < 5; index++) await holder.mutex(`other:${index}`).acquire()
  const grant = await holder.mutex('order:4711').acquire()
  const { address, run } = await startConsole(place)
  const page = await pageAt(address)
  await shows(page, '.lock .name', 'stuck')
  const wait = waiting(waiter.mutex('order:4711').acquire())
  await shows(page, '.lock.blocking', 'order:4711')
  await press(page, '/')
  await page.keyboard.type('order:')
  await expect.poll(() => page.locator('.lock[href]').count()).toBe(1)
  await press(page, 'Tab', 'Enter')
  await shows(page, 'h1', 'order:4711')
  // The heading has the focus. The session and the button follow it.
  await press(page, 'Tab', 'Tab', 'Enter')
  await shows(page, 'dialog[open]', 'stuck')
  await shows(page, 'dialog[open]', 'is next in the queue')
  // The button Cancel has the focus first.
  await press(page, 'Enter')
  await page.locator('dialog').waitFor({ state: 'detached' })
  grant.assertHeld()
  await press(page, 'Enter')
  await shows(page, 'dialog[open]', 'order:4711')
  await press(page, 'Escape')
  await page.locator('dialog').waitFor({ state: 'detached' })
  await press(page, 'Enter', 'Tab', 'Enter')
  await shows(page, '[role=status]', 'Released order:4711.')
  const next = await wait
  await expect.poll(() => grant.signal.aborted).toBe(true)
  await shows(page, '.card .name', 'next')
  await shows(page, '.timeline', 'an operator took it from stuck')
  expect(run.stderr).toMatch(/^signalbox: console: released key "order:4711", token \d+\n$/)

  await press(page, 'Tab')
  await page.locator('nav a', { hasText: 'Sessions' }).focus()
  await press(page, 'Enter')
  await shows(page, 'h1', 'Sessions')
  await press(page, 'Tab', 'Enter')
  await shows(page, 'h1', 'stuck')
  await press(page, 'Tab', 'Enter')
  await shows(page, 'dialog[open]', 'other:0, other:1, other:2, other:3, other:4')
  // The session acquires another lock while the question is open.
  await holder.mutex('late').acquire()
  await shows(page, 'dialog[open]', /It loses .*late/)
  await press(page, 'Tab', 'Enter')
  await shows(page, '[role=status]', 'Revoked stuck: 6 requests.')
  next.assertHeld()
})

test('keys, labels and values of others are shown as text', async () => {
  await using place = new CommandPlace()
  const hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
  const [box, waiter] = [await place.box(hostile), await place.box(`&lt;b&gt;\u202e${hostile}`)]
  const grant = await box.mutex(hostile).acquire()
  const stop = new AbortController()
  const wait = waiting(waiter.mutex(hostile).acquire({ signal: stop.signal }))
  await box.store('<b>').put(hostile, { [hostile]: [hostile] })
  await box.limiter(hostile, { limit: 2, per: '1h' }).key(hostile).acquire()
  const { address } = await startConsole(place)
  const page = await pageAt(address)
  await shows(page, '.lock .key', hostile)
  const encoded = encodeURIComponent(hostile)
  for (const [hash, selector] of [
    [`key/${encoded}`, '.waiter .name'],
    ['waits', '.wait .name'],
    ['limits', '.card .mode'],
    ['sessions', '.session .name'],
    [`values/%3Cb%3E`, '.values .key'],
    [`value/%3Cb%3E/${encoded}`, 'pre'],
    [`locks/${encoded}`, '.lock .name'],
  ] as const) {
    await page.evaluate(`location.hash = '#/${hash}'`)
    await shows(page, selector, hash.startsWith('value/') ? JSON.stringify(hostile).slice(1, -1) : hostile)
    expect(await page.locator('img, main script').count()).toBe(0)
    expect(await page.title()).toContain('· Signalbox')
  }
  await page.evaluate(`location.hash = '#/key/${encoded}'`)
  // A character that reverses the following text is shown as its code.
  await shows(page, '.waiter .name', '&lt;b&gt;\\u202e<img')
  await page.locator('button', { hasText: 'Release' }).click()
  await shows(page, 'dialog', hostile)
  await press(page, 'Escape')
  stop.abort()
  await grant.release()
  await expect(wait).rejects.toThrow()
  await shows(page, '.timeline', hostile)
  expect(await page.locator('img, main script').count()).toBe(0)
})

test('an engine that is dead is reported, and so is a console that is; both are found again', async () => {
  await using redis = await RedisPlace.start()
  await using place = new CommandPlace(redis.server.url)
  const box = await redis.box(undefined, { label: 'billing' })
  await box.mutex('invoice:42').acquire({ lease: '10m' })
  const first = await startConsole(place)
  const page = await pageAt(first.address)
  await shows(page, '.lock .name', 'billing')
  await redis.server.kill()
  await shows(page, '.status', 'Out of date')
  await shows(page, '.old', 'This is the state of')
  // The page still shows the last known state.
  await shows(page, '.lock .name', 'billing')
  // A page that is opened later also shows the age of that state.
  await shows(page, '.old', /([7-9]|\d\d)s old/)
  const late = await pageAt(first.address)
  await shows(late, '.status', 'Out of date')
  await shows(late, '.old', 's old')
  const ageOn = async (shown: Page): Promise<number> =>
    Number(/(\d+)s old/.exec((await shown.locator('div.old').textContent())!)![1])
  expect(await ageOn(late)).toBeGreaterThanOrEqual((await ageOn(page)) - 3)
  await shows(late, '.lock .name', 'billing')
  await redis.server.restart()
  await shows(page, '.status', 'Live')
  first.run.kill('SIGKILL')
  await first.run.ended
  await shows(page, '.old', 'The server')
  const second = await startConsole(place, '--port', String(first.port))
  // The new console has another secret.
  await shows(page, 'h1', 'You are not signed in')
  await page.evaluate(`location.hash = '#secret=${second.secret}'`)
  await shows(page, '.status', 'Live')
})

test('a deadlock is marked, and no view has a finding about accessibility, light, dark and on a phone', async () => {
  await using redis = await RedisPlace.start()
  await using place = new CommandPlace(redis.server.url)
  const boxes = await Promise.all(['billing', 'report', 'import', 'mailer'].map(label => place.box(label)))
  const [billing, report, importer, mailer] = boxes as [Box, Box, Box, Box]
  const stop = new AbortController()
  const { signal } = stop
  await billing.mutex('invoice:2026-11').acquire()
  await report.mutex('ledger').acquire()
  await mailer.semaphore('smtp', { max: 4 }).acquire()
  await importer.readWriteLock('catalogue').read.acquire()
  const waits = [
    billing.mutex('ledger').acquire({ signal }),
    report.mutex('invoice:2026-11').acquire({ signal }),
    importer.mutex('ledger').acquire({ signal }),
    mailer.readWriteLock('catalogue').write.acquire({ signal }),
  ].map(waiting)
  const limiter = billing.limiter('partner api', { limit: 20, per: '1m' })
  await limiter.acquire(17)
  await limiter.key('amy').pauseUntil(Date.now() + 600_000)
  await billing.store('accounts').put('amy', { balance: 42 })
  const { address } = await startConsole(place)
  const views = [
    'locks',
    'key/ledger',
    'waits',
    'limits',
    'values/accounts',
    'value/accounts/amy',
    'sessions',
    'doctor',
  ]
  for (const look of [
    { colorScheme: 'light' },
    { colorScheme: 'dark' },
    { viewport: { width: 360, height: 740 } },
  ] satisfies Look[]) {
    const page = await pageAt(address, look)
    await shows(page, '.failure', 'Possible deadlock')
    for (const view of [...views, `session/${report.session}`]) {
      await page.evaluate(`location.hash = '#/${view}'`)
      await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1')
      if (view === 'waits') {
        await shows(page, '.failure', /billing → report|report → billing/)
        expect(await page.locator('.node.stuck').count()).toBe(2)
        expect(await page.locator('.edge.stuck').count()).toBe(2)
        const cut = `(drawing => drawing.scrollWidth - drawing.clientWidth)(document.querySelector('.drawing'))`
        // On a phone, the drawing may scroll.
        if (!('viewport' in look)) expect(await page.evaluate(cut)).toBe(0)
      }
      if (view === 'doctor') {
        await page.locator('main button').click()
        await shows(page, 'main', 'a round trip takes')
        await shows(page, '.warned', 'Weakens: mutual exclusion (P1); commits are atomic and durable (P13)')
      }
      expect(await findings(page)).toEqual([])
      // Nothing is cut off, and the page itself does not scroll sideways.
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
    }
    if (picture !== undefined && 'colorScheme' in look && look.colorScheme === 'light') {
      await page.evaluate(`location.hash = '#/waits'`)
      await shows(page, '.wait', 'ledger')
      await page.evaluate('document.activeElement.blur()')
      await page.setViewportSize({ width: 1280, height: 640 })
      await page.screenshot({ path: picture })
    }
  }
  stop.abort()
  await Promise.allSettled(waits)
  expect(await soFar(waits[0]!)).toBe('rejected')
})

test('the values of a store are listed by prefix, page by page, each page with its address', async () => {
  await using redis = await RedisPlace.start()
  await using place = new CommandPlace(redis.server.url)
  const box = await place.box('billing')
  const store = box.store('orders')
  const keys = Array.from({ length: 250 }, (_, index) => `order:${String(index).padStart(3, '0')}`)
  await Promise.all(keys.map((key, index) => store.put(key, { total: index })))
  await store.put('customer:1', 'x'.repeat(200_000))
  await redis.server.command('SET', 'signalbox:1:{}:value:orders/damaged', 'not ours')
  const version = await store.put('order:007', { total: 'newer' })
  await box.store('<b>').put('key', 1)
  const { address } = await startConsole(place)
  const page = await pageAt(address)
  await shows(page, '.status', 'Live')
  await page.locator('nav a', { hasText: 'Values' }).click()
  await shows(page, '.summary', '2 stores.')
  expect(await page.locator('.values .key').allInnerTexts()).toEqual(['<b>', 'orders'])
  await page.locator('.values .key', { hasText: 'orders' }).click()
  await shows(page, '.summary', '100 values, and there are more.')
  await shows(page, 'tr:nth-child(1) .json', '199,842 more characters')
  await shows(page, 'tr:nth-child(2) .damaged', 'orders/damaged')
  await shows(page, 'tr:nth-child(3) .key', 'order:000')
  expect(await page.locator('tbody tr').count()).toBe(100)
  const shown = page.locator('tr', { hasText: 'order:007' })
  expect(await shown.locator('td').allInnerTexts()).toEqual([
    '{"total":"newer"}',
    String(version),
    expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
  ])
  await page.locator('a', { hasText: 'Next page' }).click()
  await shows(page, '.summary', '100 values after order:097, and there are more.')
  await page.locator('a', { hasText: 'Next page' }).click()
  await shows(page, '.summary', '52 values after order:197.')
  expect(await page.locator('a', { hasText: 'Next page' }).count()).toBe(0)
  // The address leads to the same page. A reload shows newer writes.
  await store.delete('order:249')
  await page.reload()
  await shows(page, '.summary', '51 values after order:197.')
  await page.locator('input').nth(1).fill('order:00')
  await press(page, 'Enter')
  await shows(page, '.summary', '10 values.')
  await page.locator('.values .key', { hasText: 'order:007' }).click()
  await shows(page, 'h1', 'order:007')
  await shows(page, 'pre', '"total": "newer"')
  await store.put('order:007', 'newest')
  await page.locator('button', { hasText: 'Read again' }).click()
  await shows(page, 'pre', '"newest"')
  for (const [hash, text] of [
    ['values/orders/nothing', 'orders has no values whose keys begin with nothing.'],
    ['value/orders/nothing', 'orders has no key nothing.'],
    ['values/a%2Fb', 'store must be a name without'],
    ['value/orders/damaged', 'orders/damaged'],
  ] as const) {
    await page.evaluate(`location.hash = '#/${hash}'`)
    await shows(page, 'main', text)
  }
})

test('thousands of waiters are in a page of few elements, to the last row', async () => {
  await using redis = await RedisPlace.start()
  await using place = new CommandPlace(redis.server.url)
  const [holder, ...waiters] = await redis.boxes(6)
  const keys = Array.from({ length: 1000 }, (_, index) => `key:${String(index).padStart(4, '0')}`)
  const grants = await Promise.all(keys.map(key => holder!.mutex(key).acquire({ lease: '10m' })))
  const stop = new AbortController()
  const waits = waiters.flatMap(box =>
    keys.map(key => waiting(box.mutex(key).acquire({ lease: '10m', signal: stop.signal }))),
  )
  const { address } = await startConsole(place)
  const page = await pageAt(address)
  await shows(page, '.summary', '1,000 keys in use, 1,000 holders, 5,000 waiters')
  expect(await page.locator('.lock').count()).toBeLessThan(60)
  await press(page, 'End')
  await shows(page, '.lock .key', 'key:0999')
  expect(await page.locator('.lock').count()).toBeLessThan(60)
  await grants[999]!.release()
  await shows(page, '.lock .waiting', '4')
  await page.evaluate(`location.hash = '#/waits'`)
  await shows(page, '.node', '4 sessions')
  stop.abort()
  await Promise.allSettled(waits)
})
