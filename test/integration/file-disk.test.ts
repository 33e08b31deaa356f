import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { loadSqlite } from '../../src/engines/file/driver.js'
import { pause } from '../../packages/conformance/src/time.js'
import { failure } from '../support/failure.js'
import { place } from '../support/file/places.js'
import type { RemoteBox } from '../support/file/remote-box.js'
import { smallDisk, type SmallDisk } from '../support/file/small-disk.js'

const KILOBYTE = 'x'.repeat(1000)
/** Leases far longer than these tests, so no lock becomes free because its lease expired. */
const LONG = { lease: 60_000 }

interface Full {
  readonly disk: SmallDisk
  readonly one: RemoteBox
  readonly other: RemoteBox
}

/** Starts two processes on a small disk. */
async function start(size = '4m'): Promise<Full> {
  const here = place()
  const disk = await smallDisk(size)
  const { enter } = disk
  const url = `file:${disk.folder}/signalbox`
  return { disk, one: await here.process(url, { enter }), other: await here.process(url, { enter }) }
}

/** Returns the outcome of a task: `done`, or the code of its error. */
async function attempt(task: Promise<unknown>): Promise<string> {
  return task.then(
    () => 'done',
    (error: unknown) => String((error as { code?: unknown }).code),
  )
}

/** Fills a disk, including the space in the log for small changes. */
async function fill(disk: SmallDisk, box: RemoteBox): Promise<void> {
  disk.fill()
  for (let count = 0; (await attempt(box.mutex('filler', [`filler ${count}`]))) === 'done'; count++) {
    expect(count).toBeLessThan(1000)
  }
}

/** Returns the result of SQLite's check of a copy of the database. */
async function integrity(disk: SmallDisk): Promise<unknown> {
  const { folder } = place()
  disk.run('cp', '-r', join(disk.folder, 'signalbox'), folder)
  const connection = (await loadSqlite()).open(join(folder, 'signalbox', 'signalbox.db'))
  const said = connection.prepare('pragma integrity_check').get()![0]
  connection.close()
  return said
}

describe.runIf(process.platform === 'linux')('a full disk', () => {
  test('refuses writes without room, keeps all acknowledged ones, and continues when there is room', async () => {
    const { disk, one, other } = await start()
    const outcomes: string[] = []
    const put = async (): Promise<string> => {
      const outcome = await attempt(one.call('put', 's', `${outcomes.length}`, KILOBYTE))
      outcomes.push(outcome)
      return outcome
    }
    for (let count = 0; count < 20; count++) expect(await put()).toBe('done')
    disk.fill()
    while ((await put()) === 'done') expect(outcomes.length).toBeLessThan(5000)
    for (let count = 0; count < 10; count++) await put()
    await expect(one.call('put', 's', 'large', KILOBYTE.repeat(100))).rejects.toMatchObject(
      failure('UNAVAILABLE', 'the disk is full'),
    )
    disk.free()
    expect(await put()).toBe('done')
    for (const [index, outcome] of outcomes.entries()) {
      expect(['done', 'UNAVAILABLE']).toContain(outcome)
      const found = (await other.call('get', 's', `${index}`)) === KILOBYTE
      expect(`${index} ${found}`).toBe(`${index} ${outcome === 'done'}`)
    }
    await other.mutex('it', ['key'])
    expect(await integrity(disk)).toBe('ok')
    disk.fill()
    for (const box of [one, other]) await box.call('close')
  })

  test('that is full in the middle of a commit leaves no part of it', async () => {
    const { disk, one, other } = await start()
    await one.call('put', 's', 'key', 'before')
    disk.fill()
    for (const room of [4096, 16_384, 65_536]) {
      disk.free(room)
      await expect(one.call('put', 's', 'key', KILOBYTE.repeat(1000))).rejects.toMatchObject({
        code: 'UNAVAILABLE',
      })
      for (const box of [one, other]) expect(await box.call('get', 's', 'key')).toBe('before')
    }
    disk.free()
    await one.call('put', 's', 'key', KILOBYTE.repeat(1000))
    expect(await other.call('get', 's', 'key')).toBe(KILOBYTE.repeat(1000))
    expect(await integrity(disk)).toBe('ok')
  })

  test('that is full now and then loses no update of two writers', async () => {
    const { disk, one, other } = await start('3m')
    const counting = Promise.all([one, other].map(box => box.call('count', 's', 'sum', 3000)))
    for (let round = 0; round < 6; round++) {
      await pause(200)
      disk.fill()
      await pause(200)
      disk.free()
    }
    const counts = await counting
    const done = counts.reduce((sum, count) => sum + count.done, 0)
    const failures = counts.flatMap(count => count.failures)
    const unclear = failures.filter(code => code === 'INDETERMINATE').length
    const sum = await one.call('get', 's', 'sum')
    expect(sum).toBeGreaterThanOrEqual(done)
    expect(sum).toBeLessThanOrEqual(done + unclear)
    expect(done).toBeGreaterThan(100)
    expect(failures).toContain('UNAVAILABLE')
    expect(await integrity(disk)).toBe('ok')
  })

  test('refuses acquires and releases, and the released lock is free when there is room', async () => {
    const { disk, one, other } = await start()
    await one.mutex('it', ['key'], LONG)
    await fill(disk, other)
    const full = failure('UNAVAILABLE', 'the disk is full')
    await expect(other.mutex('new', ['other key'], LONG)).rejects.toMatchObject(full)
    await expect(one.release('it')).rejects.toMatchObject(full)
    disk.free()
    await other.mutex('it', ['key'], LONG)
  })

  test('refuses to open a box until there is room', async () => {
    const here = place()
    const disk = await smallDisk('1m')
    const { enter } = disk
    const open = (): Promise<RemoteBox> => here.process(`file:${disk.folder}/signalbox`, { enter })
    disk.fill()
    await expect(open()).rejects.toMatchObject(failure('UNAVAILABLE', 'the disk is full'))
    disk.free()
    await (await open()).call('put', 's', 'key', 'value')
  })
})
