import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { chmodSync, lutimesSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { setTimeout as pause } from 'node:timers/promises'
import lockfile, * as functions from '../src/index.js'
import { check, checkSync, lock, lockSync, unlock, unlockSync } from '../src/index.js'
import { thisProcess } from '../src/this-process.js'

let folder: string
let file: string

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-lockfile-test-')))
  vi.stubEnv('TMPDIR', folder)
  onTestFinished(() => {
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true })
  })
  file = join(folder, 'file')
  writeFileSync(file, '')
})

function makeFolder(age: number): void {
  mkdirSync(`${file}.lock`)
  const time = new Date(Date.now() - age)
  utimesSync(`${file}.lock`, time, time)
}

const code = (error: string) => expect.objectContaining({ code: error }) as unknown

test('the default export is lock, and has all functions', () => {
  const { default: first, ...others } = functions
  expect(first).toBe(lock)
  expect({ ...lockfile }).toEqual(others)
})

describe.each([
  ['with callbacks', lock, unlock, check],
  ['without waiting', lockSync, unlockSync, checkSync],
] as const)('%s', (_, lockIt, unlockIt, checkIt) => {
  // The Sync functions throw, and the others reject.
  const attempt = async (call: () => unknown): Promise<unknown> => {
    try {
      return await call()
    } catch (error) {
      return error
    }
  }

  test('a lock is a folder until its release', async () => {
    const release = await lockIt(file)
    expect(readdirSync(`${file}.lock`)).toEqual([])
    expect(await checkIt(file)).toBe(true)
    expect(await attempt(() => lockIt(file))).toEqual(code('ELOCKED'))
    expect(await attempt(release)).toBe(undefined)
    expect(existsSync(`${file}.lock`)).toBe(false)
    expect(await checkIt(file)).toBe(false)
    expect(await attempt(release)).toEqual(code('ERELEASED'))
  })

  test('unlock releases the lock of the process', async () => {
    expect(await attempt(() => unlockIt(file))).toEqual(code('ENOTACQUIRED'))
    const release = await lockIt(file)
    await unlockIt(file)
    expect(await checkIt(file)).toBe(false)
    expect(await attempt(release)).toEqual(code('ERELEASED'))
  })

  test('a link and its file have one lock, unless realpath is false', async () => {
    const link = join(folder, 'link')
    symlinkSync(file, link)
    const release = await lockIt(link)
    expect(await checkIt(file)).toBe(true)
    expect(await checkIt(link, { realpath: false })).toBe(false)
    await release()
    expect(await attempt(() => lockIt(join(folder, 'none')))).toEqual(code('ENOENT'))
    await (
      await lockIt(join(folder, 'none'), { realpath: false })
    )()
  })

  test('lockfilePath names the folder', async () => {
    const lockfilePath = join(folder, 'other')
    await lockIt(file, { lockfilePath })
    expect(existsSync(lockfilePath)).toBe(true)
    expect(await checkIt(file)).toBe(false)
    expect(await checkIt(file, { lockfilePath })).toBe(true)
    await unlockIt(file)
    expect(existsSync(lockfilePath)).toBe(false)
  })

  test('in a directory that does not exist, nothing is locked, and nothing can be', async () => {
    const lockfilePath = join(folder, 'none', 'lock')
    expect(await attempt(() => lockIt(file, { lockfilePath }))).toEqual(code('ENOENT'))
    expect(await checkIt(file, { lockfilePath })).toBe(false)
    expect(await attempt(() => unlockIt(file, { lockfilePath }))).toEqual(code('ENOTACQUIRED'))
    expect(readdirSync(folder)).toEqual(['file'])
  })

  test('a lock that vanishes with its directory can be released, and taken when the directory is back', async () => {
    const inside = join(folder, 'directory', 'file')
    for (const realpath of [true, false]) {
      mkdirSync(dirname(inside))
      writeFileSync(inside, '')
      const release = await lockIt(inside)
      rmSync(dirname(inside), { recursive: true })
      expect(await checkIt(inside, { realpath: false })).toBe(false)
      expect(await attempt(() => lockIt(inside, { realpath }))).toEqual(code('ENOENT'))
      // As in proper-lockfile, the file must exist.
      expect(await attempt(() => unlockIt(inside))).toEqual(code('ENOENT'))
      expect(await attempt(realpath ? release : () => unlockIt(inside, { realpath }))).toBe(undefined)
      expect(await attempt(release)).toEqual(code('ERELEASED'))
    }
  })

  test('a lock is stale after at least 2 seconds, 10 by default', async () => {
    makeFolder(9000)
    expect(await checkIt(file)).toBe(true)
    expect(await checkIt(file, { stale: undefined })).toBe(true)
    expect(await checkIt(file, { stale: 8000 })).toBe(false)
    expect(await attempt(() => lockIt(file))).toEqual(code('ELOCKED'))
    await (
      await lockIt(file, { stale: 8000 })
    )()
    makeFolder(1000)
    expect(await checkIt(file, { stale: 1 })).toBe(true)
    expect(await attempt(() => lockIt(file, { stale: 1 }))).toEqual(code('ELOCKED'))
  })

  test('a stale lock with the longest name is taken over', async () => {
    for (const name of ['x'.repeat(250), '\u{20ac}'.repeat(83)]) {
      file = join(folder, name)
      writeFileSync(file, '')
      makeFolder(60_000)
      await (
        await lockIt(file)
      )()
      expect(existsSync(`${file}.lock`)).toBe(false)
    }
  })

  test.each([
    ['a file', 'ENOTDIR', (path: string) => writeFileSync(path, 'GEM')],
    ['a link to a folder', 'ENOTDIR', (path: string) => symlinkSync(folder, path)],
    [
      'a folder with a file',
      'ENOTEMPTY',
      (path: string) => {
        mkdirSync(path)
        writeFileSync(join(path, 'something'), '')
      },
    ],
  ] as const)('%s at the path of the lock is never moved or removed', async (_, error, create) => {
    const project = join(folder, 'project')
    mkdirSync(project)
    file = join(project, 'file')
    writeFileSync(file, '')
    create(`${file}.lock`)
    lutimesSync(`${file}.lock`, 0, 0)
    utimesSync(`${file}.lock`, 0, 0)
    // Each change of a name in the directory sets its time.
    const { mtimeNs } = statSync(project, { bigint: true })
    expect(await checkIt(file)).toBe(false)
    expect(await attempt(() => lockIt(file))).toEqual(code(error))
    expect(statSync(project, { bigint: true }).mtimeNs).toBe(mtimeNs)
    expect(readdirSync(project)).toEqual(['file', 'file.lock'])
  })

  test('null counts as left out, as in proper-lockfile', async () => {
    const nothing = null as unknown as undefined
    const options = { retries: nothing, stale: nothing, update: nothing, lockfilePath: nothing, fs: nothing }
    const release = await lockIt(file, { ...options, onCompromised: nothing })
    expect(existsSync(`${file}.lock`)).toBe(true)
    expect(await attempt(() => lockIt(file, options))).toEqual(code('ELOCKED'))
    expect(await attempt(() => lockIt(file, nothing))).toEqual(code('ELOCKED'))
    await release()
    await (
      await lockIt(file, nothing)
    )()
  })

  test('a file system of the caller has all calls', async () => {
    const calls: string[] = []
    const mine = new Proxy(fs, {
      get(target, name) {
        const value = target[name as 'stat']
        if (typeof value !== 'function') return value as unknown
        return (...values: never[]): unknown => {
          calls.push(String(name))
          return (value as (...values: never[]) => unknown).apply(target, values)
        }
      },
    })
    const release = await lockIt(file, { fs: mine })
    await checkIt(file, { fs: mine })
    await release()
    const expected = ['realpath', 'mkdir', 'stat', 'realpath', 'stat', 'rmdir']
    expect(calls.filter(name => !name.startsWith('_'))).toEqual(
      lockIt === lockSync ? expected.map(name => `${name}Sync`) : expected,
    )
    expect(readdirSync(folder)).toEqual(['file'])
  })

  test('a folder for notes that others may write is not used', async () => {
    await (
      await lockIt(file)
    )()
    const [notes = ''] = readdirSync(folder).filter(name => name.startsWith('signalbox-lockfile-'))
    chmodSync(join(folder, notes), 0o777)
    const release = await lockIt(file)
    expect(readdirSync(join(folder, notes))).toEqual([])
    await release()
    chmodSync(join(folder, notes), 0o700)
    const noted = await lockIt(file)
    expect(readdirSync(join(folder, notes))).toHaveLength(1)
    await noted()
  })
})

test.runIf(process.platform === 'linux')(
  'old notes of dead holders and waiters are removed, and no others',
  async () => {
    const once = async (): Promise<void> => (await lock(file))()
    await once()
    const [name = ''] = readdirSync(folder).filter(entry => entry.startsWith('signalbox-lockfile-'))
    // A different folder for notes, which no lock has used.
    const notes = join(folder, 'other', name)
    mkdirSync(notes, { recursive: true })
    chmodSync(notes, 0o700)
    for (const [note, holder] of [
      ['new-dead', `${process.pid} 1`],
      ['old-dead', `${process.pid} 1`],
      ['old-living', thisProcess()],
      ['old-queue/dead', `${process.pid} 1`],
      ['old-queue-living/dead', `${process.pid} 1`],
      ['old-queue-living/living', thisProcess()],
      ['new-queue/dead', `${process.pid} 1`],
    ] as const) {
      const path = join(notes, note)
      mkdirSync(dirname(path), { recursive: true })
      symlinkSync(holder, path)
      if (note.startsWith('old'))
        for (const each of [path, join(notes, note.split('/')[0]!)]) lutimesSync(each, 0, 0)
    }
    vi.stubEnv('TMPDIR', join(folder, 'other'))
    await once()
    expect(readdirSync(notes, { recursive: true }).sort()).toEqual([
      'new-dead',
      'new-queue',
      'new-queue/dead',
      'old-living',
      'old-queue-living',
      'old-queue-living/living',
    ])
  },
)

test('the Sync form takes no retries', () => {
  expect(() => lockSync(file, { retries: 1 })).toThrow('Cannot use retries with the sync api')
  expect(() => lockSync(file, { retries: { retries: 1 } })).toThrow('Cannot use retries with the sync api')
  lockSync(file, { retries: 0 })()
  lockSync(file, { retries: { retries: 0 } })()
})

test('an own lock is never stale, even if it was not updated in time', async () => {
  const release = await lock(file)
  const time = new Date(Date.now() - 60_000)
  utimesSync(`${file}.lock`, time, time)
  expect(await check(file)).toBe(true)
  await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
  await release()
})

test('a fresh lock is given back by a caller that found the one before it stale', async () => {
  makeFolder(60_000)
  const { renameSync } = fs
  // A slow caller has checked the folder. A fast one replaces the folder meanwhile.
  vi.spyOn(fs, 'stat').mockImplementationOnce(((path: string, options: object, done: never) => {
    fs.stat(path, options, ((...found: never[]) => {
      renameSync(`${file}.lock`, join(folder, 'away'))
      mkdirSync(`${file}.lock`)
      ;(done as (...found: never[]) => void)(...found)
    }) as never)
  }) as never)
  await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
  expect(statSync(`${file}.lock`).mtimeMs).toBeGreaterThan(Date.now() - 60_000)
})

test('a release waits for an update that is being written, so it does not change the folder of the next holder', async () => {
  const errors: Error[] = []
  const updates: (() => void)[] = []
  const slow: typeof fs = { ...fs }
  Object.assign(slow, {
    utimes: (...values: Parameters<typeof fs.utimes>) =>
      updates.push(() => {
        fs.utimes(...values)
      }),
  })
  const onCompromised = (error: Error) => errors.push(error)
  for (const end of ['release', 'unlock']) {
    const release = await lock(file, { fs: slow, update: 1000, onCompromised })
    while (updates.length === 0) await pause(20)
    const released = end === 'release' ? release() : unlock(file, { fs: slow })
    await pause(50)
    expect(existsSync(`${file}.lock`)).toBe(true)
    updates.shift()!()
    await released
    expect(existsSync(`${file}.lock`)).toBe(false)
  }
  expect(errors).toEqual([])
})

test.each([10, 1000, 2000])(
  'a lock is kept on a file system that stores times in steps of %i ms',
  async step => {
    const errors: Error[] = []
    const updates: Date[] = []
    const floor = (time: Date): Date => new Date(Math.floor(time.getTime() / step) * step)
    const coarse = Object.assign(
      { ...fs },
      {
        stat: (path: string, done: (error: Error | null, stats?: fs.Stats) => void) => {
          fs.stat(path, (error, stats) =>
            done(error, stats && Object.assign(stats, { mtime: floor(stats.mtime) })),
          )
        },
        utimes: (path: string, accessed: Date, modified: Date, done: () => void) => {
          updates.push(modified)
          fs.utimes(path, accessed, floor(modified), done)
        },
      },
    )
    const release = await lock(file, { fs: coarse, update: 1000, onCompromised: error => errors.push(error) })
    while (updates.length < 2 && errors.length === 0) await pause(20)
    await release()
    expect(errors).toEqual([])
  },
)

test('a process that was stopped as it made the folder does not share the lock of the process that replaced it', async () => {
  let other: (() => Promise<void>) | undefined
  vi.spyOn(fs, 'stat').mockImplementationOnce(((path: string, options: object, done: never) => {
    rmdirSync(path)
    void lock(file, { realpath: false }).then(release => {
      other = release
      fs.stat(path, options, done)
    })
  }) as never)
  await expect(lock(file)).rejects.toMatchObject({ code: 'ELOCKED' })
  expect(await check(file)).toBe(true)
  await other!()
  expect(readdirSync(folder).filter(name => name.endsWith('.lock'))).toEqual([])
})

test.each([-3_600_000, 3_600_000])(
  'a lock that was taken over is not released after the clock was set by %i ms',
  async by => {
    const release = await lock(file, { onCompromised: () => undefined })
    const time = (): number => statSync(`${file}.lock`).mtime.getTime()
    const before = time()
    // A new folder may have the number of the old one, and within a millisecond also its time.
    do {
      rmdirSync(`${file}.lock`)
      mkdirSync(`${file}.lock`)
    } while (time() === before)
    const { now } = Date
    vi.spyOn(Date, 'now').mockImplementation(() => now() + by)
    await expect(release()).rejects.toMatchObject({ code: 'ERELEASED', cause: { code: 'ECOMPROMISED' } })
    expect(existsSync(`${file}.lock`)).toBe(true)
  },
)

test('an update that looked before a release does not touch the folder after it', async () => {
  const utimes = vi.fn()
  const looks: (() => void)[] = []
  const slow: typeof fs = { ...fs, utimes: Object.assign(utimes, { __promisify__: fs.utimes.__promisify__ }) }
  const release = await lock(file, { fs: slow, update: 1000 })
  Object.assign(slow, {
    stat: (path: string, done: (...found: unknown[]) => void) => {
      fs.stat(path, (...found) => looks.push(() => done(...found)))
    },
  })
  while (looks.length === 0) await pause(20)
  await release()
  looks[0]!()
  await pause(20)
  expect(utimes).not.toHaveBeenCalled()
})
