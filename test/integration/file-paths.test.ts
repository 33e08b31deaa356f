import { mkdirSync, readdirSync, symlinkSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { InvalidArgumentError, open, UnavailableError } from 'signalbox'
import { describe, expect, test } from 'vitest'
import { queued } from '../../packages/conformance/src/time.js'
import { place } from '../support/file/places.js'

/** Maximum length of the path of a folder, in bytes. SQLite allows 503 bytes for the path of the database in it. */
const LONGEST = 490

/** Returns a path below a folder, with this number of bytes. */
function longPath(folder: string, length: number): string {
  let path = folder
  while (length - path.length > 200) path = join(path, 'd'.repeat(100))
  return join(path, 'e'.repeat(length - path.length - 1))
}

describe('all names of a folder mean the same place', () => {
  test.each<[what: string, name: string, url: (folder: string) => string]>([
    ['its absolute path', 'plain', folder => `file:${folder}`],
    ['with slashes', 'plain', folder => `file://${folder}`],
    ['a slash at the end', 'plain', folder => `file:${folder}/`],
    ['a way round', 'plain', folder => `file:${folder}/../plain/.`],
    ['blanks', 'a b  c', folder => `file:${folder}`],
    ['blanks, encoded', 'a b  c', folder => pathToFileURL(folder).href],
    ['letters of other languages', 'Köln 東京 🚂', folder => `file:${folder}`],
    ['letters of other languages, encoded', 'Köln 東京 🚂', folder => pathToFileURL(folder).href],
    ['signs that mean something to URLs, SQL and shells', `#a;'b"&$c`, folder => pathToFileURL(folder).href],
    ['a percent sign and a question mark', '100%?', folder => pathToFileURL(folder).href],
    ['a line end', 'a\nb', folder => pathToFileURL(folder).href],
  ])('%s', async (_what, name, url) => {
    const here = place()
    const folder = join(here.folder, name)
    const one = await here.open(pathToFileURL(folder).href)
    const other = await here.open(url(folder))
    const grant = await one.mutex('key').acquire()
    expect(await other.mutex('key').tryAcquire()).toBeUndefined()
    await grant.release()
    expect(await other.mutex('key').tryAcquire()).toBeDefined()
    expect(readdirSync(here.folder)).toEqual([name])
  })

  test('a relative one, from another directory', async () => {
    const here = place()
    mkdirSync(join(here.folder, 'below'))
    const one = await here.box()
    const grant = await one.mutex('key').acquire()
    for (const url of ['file:..', 'file:../', 'file:./../../' + here.folder.split('/').at(-1)!]) {
      const other = await here.process(url, { cwd: join(here.folder, 'below') })
      const [report] = await other.call('inspect', '')
      expect(report).toMatchObject({ key: 'key', holders: [{ session: one.session }] })
    }
    await grant.release()
    const inside = await here.process('file:deep/er', { cwd: here.folder })
    await inside.mutex('it', ['key'])
    expect(readdirSync(join(here.folder, 'deep', 'er'))).toContain('signalbox.db')
  })

  test('a link by which the first box has opened it, also when that box and the link are gone', async () => {
    const here = place()
    const link = `${here.folder}.link`
    symlinkSync(here.folder, link)
    const first = await here.process(`file:${link}`)
    const one = await here.box()
    await first.call('close')
    unlinkSync(link)
    const grant = await one.mutex('key').acquire()
    const [report] = await (await here.process()).call('inspect', '')
    expect(report).toMatchObject({ key: 'key', holders: [{ session: one.session }] })
    await grant.release()
  })

  test('a symbolic link to it, in this process and in others', async () => {
    const here = place()
    const [folder, link] = [join(here.folder, 'folder'), join(here.folder, 'link')]
    mkdirSync(folder)
    symlinkSync('folder', link)
    const boxes = [await here.open(`file:${folder}`), await here.open(`file:${link}`)]
    const remote = await here.process(`file:${link}`)
    await remote.mutex('it', ['key'])
    for (const box of boxes) expect(await box.mutex('key').tryAcquire()).toBeUndefined()
    const waiting = boxes[0]!.mutex('key').acquire()
    await remote.release('it')
    await (await waiting).release()
    await boxes[1]!.mutex('key').acquire()
    expect(await boxes[0]!.mutex('key').tryAcquire()).toBeUndefined()
  })
})

describe('a long path', () => {
  test('works up to the length that SQLite takes, waking and watching included', async () => {
    const here = place()
    const folder = longPath(here.folder, LONGEST)
    const url = `file:${folder}`
    const box = await here.open(url)
    const [one, other] = [await here.process(url), await here.process(url)]
    await one.mutex('it', ['key'], { lease: 60_000 })
    const waiting = box.mutex('key').acquire({ lease: 60_000 })
    await queued(box, 'key', 1)
    const next = other.mutex('it', ['key'])
    await queued(box, 'key', 2)
    await one.kill()
    await (await waiting).release()
    await next
  })

  test('is refused beyond that, also by a short link, and nothing is made', async () => {
    const here = place()
    const folder = longPath(here.folder, LONGEST + 1)
    const opening = open(`file:${folder}`)
    await expect(opening).rejects.toThrow(UnavailableError)
    await expect(opening).rejects.toThrow(`has ${LONGEST + 1} bytes, 1 more than SQLite takes`)
    expect(readdirSync(here.folder)).toEqual([])
    mkdirSync(folder, { recursive: true })
    symlinkSync(folder, join(here.folder, 'link'))
    await expect(open(`file:${here.folder}/link`)).rejects.toThrow('more than SQLite takes')
    expect(readdirSync(folder)).toEqual([])
  })
})

test.each([
  'file:',
  'file:?durable=false',
  'file://somewhere/folder',
  'file:////folder',
  'file:./100%',
  'file:./nul%00',
  'file:./folder?durable=perhaps',
  'file:./folder?size=3',
])('%s is refused before anything is created', async url => {
  const opening = open(url)
  await expect(opening).rejects.toThrow(InvalidArgumentError)
  await expect(opening).rejects.toThrow(/a file: URL|durable must|unknown option/)
})
