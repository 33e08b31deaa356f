import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { diagnose } from 'signalbox'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { place, type Place } from '../support/file/places.js'

const ANOTHER_USER = 65_534
const GROUP = 54_321

/** A program that tries to change each file of a folder as another user, and prints a line for each success. */
const INTRUDER = `
  const { openSync, readdirSync } = require('node:fs')
  const { connect } = require('node:net')
  const [folder, ...names] = process.argv.slice(1)
  const attempt = (what, task) => { try { task(); console.log(what) } catch {} }
  attempt('list', () => readdirSync(folder))
  for (const name of names) {
    attempt('read ' + name, () => openSync(folder + '/' + name, 'r'))
    attempt('write ' + name, () => openSync(folder + '/' + name, 'r+'))
    connect({ path: folder + '/' + name }).on('connect', () => console.log('connect ' + name)).on('error', () => {}).unref()
  }
  setTimeout(() => process.exit(), 300)`

function intrusions(folder: string, gid = ANOTHER_USER): string[] {
  const argv = ['-e', INTRUDER, folder, ...readdirSync(folder)]
  const { stdout, stderr } = spawnSync(process.execPath, argv, {
    uid: ANOTHER_USER,
    gid,
    encoding: 'utf8',
  })
  expect(stderr).toBe('')
  return stdout.split('\n').filter(line => line !== '')
}

function modes(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder).map(name => [
      name.replace(/^[0-9a-f]{24}/, ''),
      (statSync(join(folder, name)).mode & 0o777).toString(8),
    ]),
  )
}

const names = [
  'signalbox.db',
  'signalbox.db-wal',
  'signalbox.db-shm',
  'signalbox.db-turns',
  'opening.db',
  '.box',
]
const all = (mode: string): Record<string, string> => Object.fromEntries(names.map(name => [name, mode]))

let umask: number
let here: Place

beforeEach(() => {
  here = place()
  chmodSync(here.folder, 0o755)
  umask = process.umask(0)
})

afterEach(() => {
  process.umask(umask)
})

/** Opens a box and puts a value, so that all files exist. */
async function used(folder: string): Promise<void> {
  const box = await here.open(`file:${folder}`)
  await box.store('s').put('key', 'secret')
}

/** Expects that `open` and `doctor` reject a folder. */
async function refused(folder: string, reason: string): Promise<void> {
  const matching = expect.stringContaining(reason) as string
  await expect(here.open(`file:${folder}`)).rejects.toMatchObject({ code: 'UNAVAILABLE', message: matching })
  const { findings } = await diagnose(`file:${folder}`)
  expect(findings).toContainEqual(expect.objectContaining({ id: 'untrusted-folder', how: matching }))
}

test.each([0, 0o022, 0o007])('a new folder is for its owner alone, also with the umask %i', async mask => {
  process.umask(mask)
  const folder = join(here.folder, 'above', 'new')
  await used(folder)
  expect((statSync(folder).mode & 0o777).toString(8)).toBe('700')
  expect(statSync(join(here.folder, 'above')).mode & 0o022).toBe(0)
  expect(modes(folder)).toEqual(all('600'))
})

test('a folder whose files every user may replace is refused and reported', async () => {
  const folder = join(here.folder, 'public')
  mkdirSync(folder, { mode: 0o777 })
  await refused(folder, `every user may replace the files in ${folder}`)
  chmodSync(folder, 0o1777)
  expect((await diagnose(`file:${folder}`)).findings).toEqual([])
  symlinkSync(join(tmpdir(), 'elsewhere'), join(folder, 'signalbox.db'))
  await expect(here.open(`file:${folder}`)).rejects.toThrow('signalbox.db is not a regular file')
})

describe.runIf(process.platform === 'linux' && process.getuid?.() === 0)('another user', () => {
  test('can neither read nor write nor connect in a new folder', async () => {
    const folder = join(here.folder, 'new')
    await used(folder)
    expect(intrusions(folder)).toEqual([])
  })

  test('can only list a folder that others may look into, also if its files were open to all', async () => {
    const folder = join(here.folder, 'open')
    mkdirSync(folder, { mode: 0o755 })
    await used(folder)
    for (const name of readdirSync(folder)) if (!name.endsWith('.box')) chmodSync(join(folder, name), 0o666)
    expect((await diagnose(`file:${folder}`)).findings.map(({ id }) => id)).toEqual(['open-to-all'])
    await used(folder)
    expect(modes(folder)).toEqual(all('600'))
    expect(intrusions(folder)).toEqual(['list'])
    expect((await diagnose(`file:${folder}`)).findings).toEqual([])
  })

  test.each(['signalbox.db', 'signalbox.db-journal', 'opening.db-journal'])(
    'can not place a %s where every user may make files',
    async name => {
      const folder = join(here.folder, 'public')
      mkdirSync(folder)
      chmodSync(folder, 0o1777)
      // SQLite would roll back a journal.
      if (name !== 'signalbox.db') await (await here.open(`file:${folder}`)).close()
      writeFileSync(join(folder, name), '', { mode: 0o666 })
      chownSync(join(folder, name), ANOTHER_USER, ANOTHER_USER)
      await refused(folder, `${name} belongs to another user`)
      // Removing the permission later does not change the owner of the file.
      chmodSync(folder, 0o755)
      await refused(folder, `${name} belongs to another user`)
    },
  )

  describe('can not make', () => {
    let open: string

    beforeEach(() => {
      open = join(here.folder, 'open')
      mkdirSync(open)
      chmodSync(open, 0o1777)
    })

    test('a folder before its user does, where every user may make one', async () => {
      const folder = join(open, 'locks')
      mkdirSync(folder)
      for (const mode of [0o700, 0o755, 0o1777]) {
        chmodSync(folder, mode)
        chownSync(folder, ANOTHER_USER, ANOTHER_USER)
        await refused(folder, `${folder} belongs to another user`)
        mkdirSync(join(folder, 'own'), { recursive: true })
        await refused(join(folder, 'own'), `${folder} belongs to another user`)
      }
    })

    test('a symbolic link to it there, also one that another link leads to', async () => {
      const target = join(here.folder, 'target')
      mkdirSync(target, { mode: 0o700 })
      const [link, way] = [join(open, 'locks'), join(here.folder, 'way')]
      symlinkSync('../target', link)
      symlinkSync('open/locks', way)
      await used(way)
      lchownSync(link, ANOTHER_USER, ANOTHER_USER)
      for (const path of [link, way]) await refused(path, `${link} belongs to another user`)
    })
  })

  test('has a box of its own in a folder of root that its group may write, and not in one of a third user', async () => {
    const folder = join(here.folder, 'shared')
    mkdirSync(folder)
    for (const [mode, owner, accepted] of [
      [0o2770, 0, true],
      [0o2770, 54_322, true],
      [0o1777, 54_322, false],
    ] as const) {
      chownSync(folder, owner, ANOTHER_USER)
      chmodSync(folder, mode)
      const opened = here.process(`file:${folder}`, { user: ANOTHER_USER })
      if (accepted) await opened
      else await expect(opened).rejects.toThrow(`${folder} belongs to another user (54322)`)
    }
  })

  describe('may not write a folder on the way to the files', () => {
    let above: string
    let folder: string

    beforeEach(() => {
      above = join(here.folder, 'above')
      folder = join(above, 'locks')
      mkdirSync(folder, { recursive: true, mode: 0o755 })
      chownSync(folder, ANOTHER_USER, ANOTHER_USER)
    })

    /** Opens a box as the owner of the folder. */
    const opened = (path = folder): Promise<unknown> => here.process(`file:${path}`, { user: ANOTHER_USER })

    test.each<[string, number, number, who?: string]>([
      ['777', 0, 0, 'every user'],
      ['2777', ANOTHER_USER, GROUP, 'every user'],
      ['755', 54_322, 0, 'another user (54322)'],
      ['1777', 54_322, 0, 'another user (54322)'],
      ['775', 0, GROUP, `a group without this user (${GROUP})`],
      // Unless it is a sticky one, one of a group of this user, one of the group of root, or its own.
      ['1777', 0, 0],
      ['2775', 54_322, ANOTHER_USER],
      ['775', 0, 0],
      ['775', ANOTHER_USER, GROUP],
    ])('with the mode %s, owner %i and group %i: %s', async (mode, owner, group, who) => {
      chownSync(above, owner, group)
      chmodSync(above, Number.parseInt(mode, 8))
      const link = join(here.folder, 'link')
      symlinkSync('above/locks', link)
      for (const path of [folder, link])
        if (who === undefined) await opened(path)
        else await expect(opened(path)).rejects.toThrow(`${who} may write ${above}, and so move ${folder}`)
    })

    test('unless it owns the folder and shares it with a group of this user', async () => {
      chownSync(above, 54_322, 0)
      chownSync(folder, 54_322, ANOTHER_USER)
      chmodSync(folder, 0o2770)
      await opened()
    })

    test('unless root opens the box, and not every user may write it', async () => {
      chownSync(above, 54_322, GROUP)
      chmodSync(above, 0o775)
      await used(folder)
      chownSync(folder, 0, 0)
      chmodSync(above, 0o777)
      await refused(folder, `every user may write ${above}, and so move ${folder}`)
    })

    test('unless a file system is mounted there, as Kubernetes does for an emptyDir', async () => {
      const mount = `mount -t tmpfs -o mode=0777 signalbox ${above} && mkdir -m 700 ${folder} && chown ${ANOTHER_USER} ${folder}`
      const enter = ['unshare', '--mount', 'sh', '-c', `${mount} && exec "$@"`, 'sh']
      await here.process(`file:${folder}`, { user: ANOTHER_USER, enter })
      await expect(here.process(`file:${above}`, { user: ANOTHER_USER, enter })).rejects.toThrow(
        `every user may replace the files in ${above}`,
      )
    })
  })

  test('is trusted with a folder that root opens elsewhere', async () => {
    const folder = join(here.folder, 'theirs')
    mkdirSync(folder, { mode: 0o700 })
    chownSync(folder, ANOTHER_USER, ANOTHER_USER)
    await used(folder)
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).uid).toBe(ANOTHER_USER)
    await used(folder)
    expect((await diagnose(`file:${folder}`)).findings).toEqual([])
  })

  test('of the group of a folder that root or its owner opens has made its files', async () => {
    const folder = join(here.folder, 'shared')
    mkdirSync(folder)
    for (const owner of [0, 54_322]) {
      chownSync(folder, owner, ANOTHER_USER)
      chmodSync(folder, 0o2770)
      const member = await here.process(`file:${folder}`, { user: ANOTHER_USER })
      expect(statSync(join(folder, 'signalbox.db')).uid).toBe(ANOTHER_USER)
      await used(folder)
      expect((await diagnose(`file:${folder}`)).findings).toEqual([])
      await member.kill()
      for (const name of readdirSync(folder)) unlinkSync(join(folder, name))
    }
  })

  test('of the group of a folder that the group may write shares it, and no other', async () => {
    const folder = join(here.folder, 'shared')
    mkdirSync(folder)
    chownSync(folder, -1, GROUP)
    chmodSync(folder, 0o2770)
    await used(folder)
    expect(modes(folder)).toEqual(all('660'))
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).gid).toBe(GROUP)
    expect(intrusions(folder)).toEqual([])
    expect(intrusions(folder, GROUP)).toEqual(
      expect.arrayContaining(['list', ...names.slice(0, 5).map(name => `write ${name}`)]),
    )
    expect(intrusions(folder, GROUP).filter(line => line.startsWith('connect'))).toHaveLength(1)
  })
})
