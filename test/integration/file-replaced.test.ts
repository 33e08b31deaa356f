import { chmodSync, chownSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { pause, until } from '../../packages/conformance/src/time.js'
import { FILES } from '../../src/engines/file/folder.js'
import { failure } from '../support/failure.js'
import { place, type Place } from '../support/file/places.js'
import type { RemoteBox, Start } from '../support/file/remote-box.js'

/** A user without permissions. */
const USER = 65_534

const REPLACED = failure('UNAVAILABLE', /was deleted, moved or replaced/)

/** Opens the folder in another process, puts a value and closes the box. Returns the outcome. */
async function laterPut(here: Place, url = here.url): Promise<unknown> {
  try {
    const box = await here.process(url)
    await box.call('put', 's', 'key', 'later')
    await box.call('close')
    return 'put'
  } catch (error) {
    return error
  }
}

/** Waits until a box has lost its lock, without a call to the engine. */
function lost(box: RemoteBox): Promise<void> {
  return until('the grant is lost', async () =>
    box.call('assertHeld', 'it').then(
      () => false,
      (error: unknown) => (error as { code?: unknown }).code === 'LOST',
    ),
  )
}

/** Opens a box in another process, which puts a value and holds a lock. */
async function holder(here: Place, url = here.url, start?: Start) {
  const box = await here.process(url, start)
  await box.call('put', 's', 'key', 'before')
  await box.mutex('it', ['a'], { lease: 60_000, renew: false })
  return box
}

describe('while a box is open', () => {
  const path = (here: Place, file: string): string => join(here.folder, file)
  const ways = [
    ['deleted', (here: Place, file: string) => rmSync(path(here, file))],
    ['moved', (here: Place, file: string) => renameSync(path(here, file), path(here, `${file}.old`))],
    [
      'replaced',
      (here: Place, file: string) => {
        rmSync(path(here, file))
        writeFileSync(path(here, file), '')
      },
    ],
  ] as const
  const cases = FILES.flatMap(file => ways.map(([way, intercept]) => [file, way, intercept] as const))

  test.each(cases)('%s is %s: its grants end and no box opens other files', async (file, _, intercept) => {
    const here = place()
    const box = await holder(here)
    intercept(here, file)
    if (file !== 'opening.db') expect(await laterPut(here)).toMatchObject(REPLACED)
    await lost(box)
    await expect(box.call('put', 's', 'key', 'too late')).rejects.toMatchObject(REPLACED)
    await box.kill()
    expect(await laterPut(here)).toBe('put')
    expect(await (await here.process()).call('get', 's', 'key')).toBe('later')
  })

  test('the folder is renamed: the grants end, and what others put in a new folder stays', async () => {
    const here = place()
    const box = await holder(here)
    renameSync(here.folder, `${here.folder}.old`)
    mkdirSync(here.folder)
    try {
      await lost(box)
      expect(await laterPut(here)).toBe('put')
      await box.call('close')
      expect(await (await here.process()).call('get', 's', 'key')).toBe('later')
    } finally {
      rmSync(`${here.folder}.old`, { recursive: true })
    }
  })

  test('the folder is renamed: the grants end, and others use the same files under the new name', async () => {
    const here = place()
    const box = await holder(here)
    const renamed = `${here.folder}.old`
    renameSync(here.folder, renamed)
    try {
      const later = await here.process(`file:${renamed}`)
      expect(await later.call('get', 's', 'key')).toBe('before')
      const waiting = later.mutex('it', ['a'], { wait: 60_000 })
      await lost(box)
      await box.kill()
      await waiting
    } finally {
      renameSync(renamed, here.folder)
    }
  })

  test('a file takes the place of a folder above: the grants end', async () => {
    const here = place()
    const above = path(here, 'above')
    const box = await holder(here, `file:${above}/locks`)
    renameSync(above, `${above}.old`)
    writeFileSync(above, '')
    await lost(box)
    await expect(box.call('put', 's', 'key', 'too late')).rejects.toMatchObject(REPLACED)
  })

  test.runIf(process.platform === 'linux' && process.getuid?.() === 0)(
    'the folder may not be entered for a while: a replaced file is noticed after that',
    async () => {
      const here = place()
      const folder = path(here, 'locks')
      mkdirSync(folder)
      chownSync(folder, USER, USER)
      for (const above of [here.folder, folder]) chmodSync(above, 0o711)
      const box = await holder(here, `file:${folder}`, { user: USER })
      chmodSync(folder, 0)
      // The box checks the file once a second.
      await pause(1500)
      await box.call('assertHeld', 'it')
      rmSync(join(folder, 'opening.db'))
      chmodSync(folder, 0o700)
      await lost(box)
    },
  )
})

test('files that SQLite creates again between boxes are not taken for replaced ones', async () => {
  const here = place()
  for (let round = 0; round < 5; round++) {
    const [first, second] = await Promise.all([here.process(), here.process()])
    await first.call('put', 's', 'key', round)
    await Promise.all([first.call('close'), second.call('close')])
  }
  expect(await laterPut(here)).toBe('put')
})
