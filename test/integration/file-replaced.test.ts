import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until } from '../../packages/conformance/src/time.js'
import { FILES } from '../../src/engines/file/folder.js'
import { place, type Place } from '../support/file/places.js'

const REPLACED = {
  code: 'UNAVAILABLE',
  message: expect.stringMatching(/was deleted, moved or replaced/) as string,
}

/** What a box of another process gets when it opens the folder, puts a value and closes. */
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

/** A box of another process that has put a value and holds a lock. */
async function holder(here: Place) {
  const box = await here.process()
  await box.call('put', 's', 'key', 'before')
  await box.mutex('it', ['a'], { lease: 60_000 })
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
  const cases = FILES.flatMap(file => ways.map(([way, meddle]) => [file, way, meddle] as const))

  test.each(cases)('%s is %s: its grants end and nobody opens other files', async (file, _, meddle) => {
    const here = place()
    const box = await holder(here)
    meddle(here, file)
    if (file !== 'opening.db') expect(await laterPut(here)).toMatchObject(REPLACED)
    // Nothing is asked of the engine meanwhile.
    await until('the grant is lost', async () =>
      box.call('assertHeld', 'it').then(
        () => false,
        (error: unknown) => (error as { code?: unknown }).code === 'LOST',
      ),
    )
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
      await until('the grant is lost', async () =>
        box.call('assertHeld', 'it').then(
          () => false,
          (error: unknown) => (error as { code?: unknown }).code === 'LOST',
        ),
      )
      expect(await laterPut(here)).toBe('put')
      await box.call('close')
      expect(await (await here.process()).call('get', 's', 'key')).toBe('later')
    } finally {
      rmSync(`${here.folder}.old`, { recursive: true })
    }
  })

  test('all is deleted: the grants end, and what others put in new files stays', async () => {
    const here = place()
    const box = await holder(here)
    for (const name of readdirSync(here.folder)) rmSync(path(here, name))
    expect(await laterPut(here)).toBe('put')
    await expect(box.call('put', 's', 'key', 'too late')).rejects.toMatchObject(REPLACED)
    await box.call('close')
    await box.kill()
    expect(await (await here.process()).call('get', 's', 'key')).toBe('later')
  })
})

test('files that SQLite makes anew between boxes are not taken for replaced ones', async () => {
  const here = place()
  for (let round = 0; round < 5; round++) {
    const [first, second] = await Promise.all([here.process(), here.process()])
    await first.call('put', 's', 'key', round)
    await Promise.all([first.call('close'), second.call('close')])
  }
  expect(await laterPut(here)).toBe('put')
})
