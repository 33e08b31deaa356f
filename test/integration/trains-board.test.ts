import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type axe from 'axe-core'
import { chromium, type Browser, type Page } from 'playwright-core'
import { open } from 'signalbox'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { trackerProgram } from '../support/trains/run-tracker.js'

/** Path of the screenshot for the README, docs/trains.png; undefined if none is wanted. */
const picture = process.env['SIGNALBOX_PICTURE']

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const bundled = fileURLToPath(new URL('../../apps/trains/data/caltrain-gtfs', import.meta.url))

let folder: string
let runs: ChildProcess[]
/** Messages on the browser's console. None are expected. */
let said: string[]

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })

afterAll(() => browser.close())

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-board-'))
  runs = []
  said = []
})
afterEach(async () => {
  for (const context of browser.contexts()) await context.close()
  for (const run of runs) {
    if (run.exitCode === null && run.signalCode === null) {
      run.kill('SIGKILL')
      await once(run, 'exit')
    }
  }
  rmSync(folder, { recursive: true, force: true })
  expect(said).toEqual([])
})

interface Watched {
  readonly run: ChildProcess
  readonly url: string
  /** Returns its output so far. */
  output(): string
}

/** Starts the tracker with a page, and returns the page's address. */
async function watched(...argv: readonly string[]): Promise<Watched> {
  const all = [trackerProgram, '--engine', `file:${folder}/state`, '--watch', ...argv]
  const run = spawn(process.execPath, all, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  runs.push(run)
  let output = ''
  const url = await new Promise<string>((resolve, reject) => {
    run.stdout!.setEncoding('utf8').on('data', (text: string) => {
      output += text
      const found = /^watch the run at (\S+)$/m.exec(output)
      if (found) resolve(found[1]!)
    })
    run.on('exit', status => reject(new Error(`the tracker ended with status ${String(status)}:\n${output}`)))
  })
  return { run, url, output: () => output }
}

type Look = Parameters<Browser['newPage']>[0]

/** Opens the page, and records what it reports to the console. */
async function pageAt(url: string, look: Look = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...look })
  page.on('console', message => said.push(message.text()))
  page.on('pageerror', error => said.push(error.message))
  await page.goto(url)
  return page
}

/** Returns the findings of an accessibility check. */
async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axeSource)
  const { violations } = (await page.evaluate('axe.run()')) as axe.AxeResults
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ')}`)
}

/** Returns the elements of the page that are wider than the window. */
function cut(page: Page): Promise<unknown> {
  return page.evaluate(`[...document.querySelectorAll('body, main *')]
    .filter(part => !part.closest('svg') && part.getBoundingClientRect().right > innerWidth + 1)
    .map(part => part.outerHTML.slice(0, 100))`)
}

/** Returns a figure of the page by its name. */
async function figure(page: Page, name: string): Promise<string> {
  const text = page.locator('.figures div', { hasText: name }).locator('dd').innerText()
  return (await text).replaceAll(/\s+/g, ' ')
}

/** Returns the number of trains that are drawn. */
async function drawn(page: Page): Promise<number> {
  return Number(await page.locator('canvas').getAttribute('data-trains'))
}

/** Waits until the page shows this text in an element. */
async function shows(page: Page, selector: string, text: string | RegExp): Promise<void> {
  await page.locator(selector, { hasText: text }).first().waitFor({ timeout: 60_000 })
}

/** The result of a correct run. */
const RIGHT = 'Correct: no update was lost, and none was made twice.'

/** Writes a timetable of one line, with a train that stops at each station. */
function feedOf(stops: readonly (readonly [id: string, name: string])[]): string {
  const path = join(folder, 'feed')
  mkdirSync(path)
  const write = (file: string, lines: readonly string[]): void =>
    writeFileSync(join(path, file), `${lines.join('\n')}\n`)
  write('stops.txt', [
    'stop_id,stop_name,stop_lat,stop_lon',
    ...stops.map(([id, name], index) => `${id},"${name.replaceAll('"', '""')}",${40 + index},10`),
  ])
  write('trips.txt', ['trip_id,service_id,route_id', 'train,daily,line'])
  write('stop_times.txt', [
    'trip_id,arrival_time,departure_time,stop_id,stop_sequence',
    ...stops.map(([id], index) => `train,08:0${index}:00,08:0${index}:00,${id},${index}`),
  ])
  return path
}

describe('the page of a run', { timeout: 120_000 }, () => {
  test('shows trains that move, killed workers, and the comparison at the end', async () => {
    symlinkSync(bundled, join(folder, 'caltrain'))
    const { run, url } = await watched('--gtfs', 'caltrain', '--days', '8', '--kill', '4')
    const page = await pageAt(url)
    await expect.poll(() => drawn(page), { timeout: 60_000 }).toBeGreaterThan(100)
    const pixels = () => page.evaluate(`document.querySelector('canvas').toDataURL()`)
    const before = await pixels()
    await expect.poll(pixels).not.toBe(before)
    await shows(page, '.station.locked', '')
    await shows(page, '.events', 'was killed')
    await shows(page, '.events', 'was replaced')
    await shows(page, '.result.right', RIGHT)
    // The map shows the same state as the figures immediately, although trains were moving.
    expect(await figure(page, 'Trains')).toMatch(/^0 /)
    await expect.poll(() => drawn(page)).toBe(0)
    await shows(page, '.result', 'Workers killed: 4. Messages delivered again: ')
    expect(await figure(page, 'Workers killed')).toBe('4')
    const [again = ''] = (await figure(page, 'Delivered again')).split(' ')
    const [committed = ''] = (await figure(page, 'Already committed')).split(' ')
    expect(await page.locator('.result').innerText()).toContain(`${again}, of which ${committed} were`)
    expect(await page.locator('.restarting').count()).toBe(0)
    const [first] = await page.locator('.busiest tbody tr').allTextContents()
    expect(first).toContain('San Francisco Caltrain')
    expect(first).toContain('640')
    const later = await pageAt(url)
    await shows(later, '.result.right', RIGHT)
    await shows(later, '.events', 'was replaced')
    expect(await drawn(later)).toBe(0)
    const ended = once(run, 'exit')
    run.kill('SIGINT')
    expect(await ended).toEqual([0, null])
  })

  test('shows trains that meet at a locked station, and what that proves, on any screen', async () => {
    symlinkSync(bundled, join(folder, 'caltrain'))
    const options = '--days 1 --speed 1800 --kill 2'.split(' ')
    const { url } = await watched('--gtfs', join(folder, 'caltrain'), ...options)
    const looks = [{}, { colorScheme: 'dark' }, { viewport: { width: 360, height: 740 } }] satisfies Look[]
    const [page, ...others] = await Promise.all(looks.map(look => pageAt(url, look)))
    const pages = [page!, ...others]
    await shows(
      page!,
      '.summary',
      'One second is 30 minutes of the timetable, and each lock is kept for 83 ms',
    )
    await shows(page!, '.summary', 'They agree only if no update was lost and none was made twice')
    expect(await page!.locator('body').innerText()).not.toContain(folder)
    await shows(page!, '.waits-list li', /train \S+ \(worker \d\) waits for train \S+ \(worker \d\)/)
    await expect
      .poll(() => figure(page!, 'Trains'), { timeout: 60_000 })
      .toMatch(/ [1-9]\d* waiting for a lock$/)
    await shows(page!, '.station.locked', '')
    await shows(page!, '.events', 'was replaced')
    for (const one of pages) {
      expect(await findings(one)).toEqual([])
      expect(await cut(one)).toEqual([])
    }
    if (picture !== undefined) {
      await page!.evaluate('document.activeElement.blur()')
      await page!.locator('.map .waits', { hasText: /\d/ }).first().waitFor()
      await page!.screenshot({ path: picture })
    }
    for (const one of pages) {
      await shows(one, '.result.right', RIGHT)
      expect(await findings(one)).toEqual([])
      expect(await cut(one)).toEqual([])
    }
  })

  test('begins when it is opened, or at once with --no-wait', async () => {
    const feed = feedOf([
      ['A', 'North'],
      ['B', 'South'],
    ])
    const waits = await watched('--gtfs', feed)
    expect((await fetch(waits.url)).status).toBe(200)
    const ended = once(waits.run, 'exit')
    waits.run.kill('SIGINT')
    expect(await ended).toEqual([130, null])
    expect(waits.output()).toContain('it begins when you open the page')
    expect(waits.output()).not.toContain('workers on')

    const unseen = await watched('--gtfs', feed, '--no-wait')
    await expect.poll(unseen.output, { timeout: 60_000 }).toContain('shows the result until you press Ctrl-C')
    await shows(await pageAt(unseen.url), '.result.right', RIGHT)
  })

  test('shows the result so far when Ctrl-C ends the run, and continues with a run that resumes it', async () => {
    symlinkSync(bundled, join(folder, 'caltrain'))
    const { run, url } = await watched('--gtfs', 'caltrain', '--days', '300')
    const page = await pageAt(url)
    // Returns the number of trains that were created at this station, as the page shows it.
    const created = async (one: Page) => {
      const cells = one.locator('.busiest tr', { hasText: '70012' }).locator('td')
      return Number((await cells.nth(1).textContent({ timeout: 60_000 }))!.replace(',', ''))
    }
    await expect.poll(() => created(page), { timeout: 60_000 }).toBeGreaterThan(500)
    const ended = once(run, 'exit')
    run.kill('SIGINT')
    await shows(page, '.result.incomplete', 'The run was interrupted; --resume continues it.')
    // The trains stay at their positions.
    expect(String(await drawn(page))).toBe((await figure(page, 'Trains')).split(' ')[0])
    expect(await ended).toEqual([130, null])

    const before = await created(page)
    const again = ['--gtfs', 'caltrain', '--days', '300', '--resume']
    const resumed = await watched(...again)
    const next = await pageAt(resumed.url)
    // The work of the first run counts from the start.
    expect(await created(next)).toBeGreaterThanOrEqual(before)
    resumed.run.kill('SIGKILL')
    await once(resumed.run, 'exit')
    await shows(next, '.status', 'Out of date')
    // The browser reports each failed connection.
    said = said.filter(text => !text.includes('net::ERR_'))
    const { port } = new URL(resumed.url)
    await watched(port, ...again)
    await shows(next, '.status', 'Live')
    said = said.filter(text => !text.includes('net::ERR_'))
  })

  test('shows locked stations, holders and waiters, with the keyboard', async () => {
    const feed = feedOf([
      ['A', 'North'],
      ['B', 'Middle'],
      ['C', 'South'],
    ])
    await using box = await open(`file:${folder}/state`, { label: 'outsider' })
    const held = await box.mutex('trains/LOC_A').acquire({ lease: '60s' })
    const { url } = await watched('--gtfs', feed, '--days', '1', '--processes', '1')
    const page = await pageAt(url)
    await shows(page, '.station.locked', 'North')
    await shows(page, '.map .waits', 'worker 1')
    await page.keyboard.press('Tab')
    const names = ['North', 'Middle', 'South']
    const chosen = page.locator('.chosen-station strong')
    // The stations may be ordered from left to right or from right to left.
    const order = (await chosen.textContent()) === 'North' ? names : names.toReversed()
    for (const name of order) {
      await shows(page, '.chosen-station', `${name}: `)
      if (name === 'North') await shows(page, '.chosen-station', 'locked by outsider; waiting: worker 1')
      else await shows(page, '.chosen-station', 'not locked')
      await page.keyboard.press('ArrowRight')
    }
    await held.release()
    await shows(page, '.result.right', RIGHT)
    expect(await page.locator('.station.locked').count()).toBe(0)
  })

  test('shows any name as text, and follows a dark color scheme', async () => {
    const name = '<img src=x onerror="document.title=1">'
    const feed = feedOf([
      [name, name],
      ['B', '&lt;b&gt;'],
      ['C', `\u202e${'long'.repeat(50)}`],
    ])
    await using box = await open(`file:${folder}/state`, { label: 'right\u202eto left' })
    const held = await box.mutex('trains/LOC_C').acquire({ lease: '60s' })
    const { url } = await watched('--gtfs', feed, '--days', '1', '--processes', '1')
    const page = await pageAt(url, { colorScheme: 'dark', viewport: { width: 360, height: 740 } })
    await shows(page, '.waits-list li', 'waits for right\\u202eto left')
    expect(await cut(page)).toEqual([])
    expect(await page.locator('body').innerText()).not.toContain('\u202e')
    await held.release()
    await shows(page, '.result.right', RIGHT)
    await shows(page, '.station text', name)
    await shows(page, '.station text', '&lt;b&gt;')
    await shows(page, '.busiest td', name)
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.title()).toBe('Train tracker · Signalbox')
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    expect(background).toBe('rgb(20, 23, 26)')
  })
})
