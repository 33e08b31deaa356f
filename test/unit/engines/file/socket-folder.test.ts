import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { SocketFolder } from '../../../../src/engines/file/socket-folder.js'
import { UnavailableError } from '../../../../src/base/errors.js'

const name = `${'f'.repeat(24)}.box`
let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'signalbox-socket-folder-'))
})

afterEach(() => {
  rmSync(root, { recursive: true })
})

/** Creates a folder whose path has this many bytes. */
function folderOf(bytes: number): string {
  let path = root
  while (bytes - path.length > 200) path = join(path, 'd'.repeat(100))
  path = join(path, 'd'.repeat(bytes - path.length - 1))
  mkdirSync(path, { recursive: true })
  return path
}

it('uses a short path unchanged, relative to the working directory', () => {
  const folder = SocketFolder.open('.')
  expect(folder.path).toBe(process.cwd())
  expect(folder.filePath(name)).toBe(join(process.cwd(), name))
  folder.close()
})

it.each([
  ['linux', 107],
  ['darwin', 103],
] as const)('gives paths that a socket takes on %s, and that lead to the folder', (platform, limit) => {
  for (const bytes of [60, 70, 71, 72, 75, 76, 80, 110, 300, 1000]) {
    const path = folderOf(bytes)
    writeFileSync(join(path, name), `in ${bytes}`)
    const folder = SocketFolder.open(path, platform)
    // On systems other than Linux the path leads through links, which work on any system.
    if (platform !== 'linux' || process.platform === 'linux') {
      expect(Buffer.byteLength(folder.socketPath(name))).toBeLessThanOrEqual(limit)
      expect(readFileSync(folder.socketPath(name), 'utf8')).toBe(`in ${bytes}`)
    }
    expect(folder.filePath(name)).toBe(join(path, name))
    folder.close()
  }
})

it('leaves no link behind', () => {
  const temporary = join(root, 't')
  mkdirSync(temporary)
  vi.stubEnv('TMPDIR', temporary)
  const folder = SocketFolder.open(folderOf(300), 'darwin')
  expect(readdirSync(temporary)).toHaveLength(1)
  folder.close()
  expect(readdirSync(temporary)).toHaveLength(0)
})

it('says which path is too long when there is no short way to it', () => {
  const path = folderOf(300)
  vi.stubEnv('TMPDIR', folderOf(200))
  expect(() => SocketFolder.open(path, 'darwin')).toThrow(UnavailableError)
  expect(() => SocketFolder.open(path, 'darwin')).toThrow(path)
})

it('says which long folder is absent', () => {
  expect(() => SocketFolder.open(join(folderOf(300), 'absent'), 'linux')).toThrow(UnavailableError)
})
