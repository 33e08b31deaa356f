import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type Browser, type Page } from 'playwright-core'
import { open } from 'signalbox'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { trackerProgram } from '../support/trains/run-tracker.js'

/** Where to write the picture of README, docs/trains.png; undefined: it is not made. */
const picture = process.env['SIGNALBOX_PICTURE']

const bundled = fileURLToPath(new URL('../../apps/trains/data/caltrain-gtfs', import.meta.url))

let browser: Browser
let folder: string
let runs: ChildProcess[]
/** What pages say on their console, where they should say nothing. */
let said: string[]

beforeAll(async () => {
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
})
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

/** Starts the tracker with a page, and gives the page's address. */
async function watched(...argv: readonly string[]): Promise<{ run: ChildProcess; url: string }> {
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
  return { run, url }
}

/** Opens the page. */
async function pageAt(url: string, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme })
  page.on('console', message => said.push(message.text()))
  page.on('pageerror', error => said.push(error.message))
  await page.addInitScript(`
    window.frames = []
    const request = window.requestAnimationFrame
    window.requestAnimationFrame = draw => request(now => {
      const begun = performance.now()
      draw(now)
      window.frames.push(performance.now() - begun)
    })`)
  await page.goto(url)
  return page
}

/** How long the page has worked on a picture: milliseconds, the median. */
function drawing(page: Page): Promise<unknown> {
  return page.evaluate('frames.sort((one, other) => one - other)[frames.length >> 1]')
}

/** How many trains are drawn. */
async function drawn(page: Page): Promise<number> {
  return Number(await page.locator('canvas').getAttribute('data-trains'))
}

/** Resolves when the page shows this text there. */
async function shows(page: Page, selector: string, text: string): Promise<void> {
  await page.locator(selector, { hasText: text }).first().waitFor({ timeout: 60_000 })
}

/** A timetable of one line with a train that goes along it. */
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
    const { run, url } = await watched('--gtfs', 'caltrain', '--days', '24', '--kill', '8')
    const page = await pageAt(url)
    await expect.poll(() => drawn(page), { timeout: 60_000 }).toBeGreaterThan(100)
    const pixels = () => page.evaluate(`document.querySelector('canvas').toDataURL()`)
    const before = await pixels()
    await expect.poll(pixels).not.toBe(before)
    await shows(page, '.station.locked', '')
    await shows(page, '#events', 'was killed')
    await shows(page, '#events', 'was replaced')
    if (picture !== undefined)
      await page.screenshot({ path: picture, clip: { x: 0, y: 0, width: 1280, height: 700 } })
    await shows(page, '#state.right', 'Every location agrees with the serial result.')
    expect(await page.locator('.restarting').count()).toBe(0)
    const [first] = await page.locator('#busiest tr').allTextContents()
    expect(first).toContain('San Francisco Caltrain')
    expect(first).toContain('1,920')
    // All that were drawn go to their end and are gone.
    await expect.poll(() => drawn(page), { timeout: 30_000 }).toBe(0)
    // Half of a picture's time is left to the browser.
    expect(await drawing(page)).toBeLessThan(8)
    const later = await pageAt(url)
    await shows(later, '#state.right', 'Every location agrees with the serial result.')
    await shows(later, '#events', 'was replaced')
    const ended = once(run, 'exit')
    run.kill('SIGINT')
    expect(await ended).toEqual([0, null])
  })

  test('shows the result so far when Ctrl-C ends the run, and continues with a run that resumes it', async () => {
    symlinkSync(bundled, join(folder, 'caltrain'))
    const { run, url } = await watched('--gtfs', 'caltrain', '--days', '300')
    const page = await pageAt(url)
    // How many trains were created there, as the page shows it.
    const created = async (one: Page) => {
      const cells = one.locator('#busiest tr', { hasText: '70012' }).locator('td')
      return Number((await cells.nth(2).textContent({ timeout: 60_000 }))!.replace(',', ''))
    }
    await expect.poll(() => created(page), { timeout: 60_000 }).toBeGreaterThan(500)
    const ended = once(run, 'exit')
    run.kill('SIGINT')
    await shows(page, '#state.incomplete', 'agrees with the serial result so far; --resume continues.')
    expect(await ended).toEqual([130, null])

    const before = await created(page)
    const again = ['--gtfs', 'caltrain', '--days', '300', '--resume']
    const resumed = await watched(...again)
    const next = await pageAt(resumed.url)
    // What the first run had done counts at once.
    expect(await created(next)).toBeGreaterThanOrEqual(before)
    resumed.run.kill('SIGKILL')
    await once(resumed.run, 'exit')
    await shows(next, '#state', 'not connected')
    // The browser reports each attempt to connect.
    said = said.filter(text => !text.includes('net::ERR_'))
    const { port } = new URL(resumed.url)
    await watched(port, ...again)
    await shows(next, '#state', 'running')
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
    await shows(page, '.station.locked .waiting', 'worker 1')
    await page.keyboard.press('Tab')
    const names = ['North', 'Middle', 'South']
    const chosen = page.locator('#station-name')
    // They may lie from left to right, or the other way.
    const order = (await chosen.textContent()) === 'North' ? names : names.toReversed()
    for (const name of order) {
      await shows(page, '#station-name', name)
      if (name === 'North') {
        await shows(page, '#station-holders', 'locked by outsider')
        await shows(page, '#station-waiters', 'waiting: worker 1')
      } else await shows(page, '#station-holders', 'not locked')
      await page.keyboard.press('ArrowRight')
    }
    await held.release()
    await shows(page, '#state.right', 'agrees with the serial result')
    expect(await page.locator('.station.locked').count()).toBe(0)
  })

  test('shows any name as text, and follows a dark color scheme', async () => {
    const name = '<img src=x onerror="document.title=1">'
    const feed = feedOf([
      [name, name],
      ['B', '&lt;b&gt;'],
    ])
    const { url } = await watched('--gtfs', feed, '--days', '1', '--processes', '1')
    const page = await pageAt(url, 'dark')
    await shows(page, '#state.right', 'agrees with the serial result')
    await shows(page, '.station text', name)
    await shows(page, '.station text', '&lt;b&gt;')
    await shows(page, '#busiest td', name)
    expect(await page.locator('img').count()).toBe(0)
    expect(await page.title()).toBe('Trains')
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor')
    expect(background).toBe('rgb(20, 23, 26)')
  })
})
