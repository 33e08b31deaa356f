import { createHash } from 'node:crypto'
import { InvalidArgumentError, shown } from './errors.js'
import type { JuteReader } from './jute-reader.js'
import type { JuteWriter } from './jute-writer.js'

/** Permissions on a node. An ACL has their sum. */
export const PERMISSIONS = { read: 1, write: 2, create: 4, delete: 8, admin: 16, all: 31 } as const

/** The permissions of some clients. */
export interface Acl {
  /** The sum of {@link PERMISSIONS}. */
  readonly permissions: number
  /** `world`, `auth`, `digest`, `ip`, `x509`, `sasl`. */
  readonly scheme: string
  readonly id: string
}

/** All permissions for every client. */
export const OPEN_ACL: readonly Acl[] = [{ permissions: PERMISSIONS.all, scheme: 'world', id: 'anyone' }]
/** All permissions for clients that have authenticated like this one, none for others. */
export const CREATOR_ACL: readonly Acl[] = [{ permissions: PERMISSIONS.all, scheme: 'auth', id: '' }]

/** The letters of the permissions in ZooKeeper's command-line client. */
const LETTERS: ReadonlyMap<string, number> = new Map([
  ['c', PERMISSIONS.create],
  ['d', PERMISSIONS.delete],
  ['r', PERMISSIONS.read],
  ['w', PERMISSIONS.write],
  ['a', PERMISSIONS.admin],
])

/**
 * Parses an ACL in the form of ZooKeeper's command-line client: `auth::cdrwa,world:anyone:r`.
 * @throws InvalidArgumentError
 */
export function parseAcl(text: string): readonly Acl[] {
  return text.split(',').map(entry => {
    const [, scheme, id, letters = ''] = /^([^:]+):(.*):([cdrwa]+)$/.exec(entry) ?? []
    if (scheme === undefined || id === undefined)
      throw new InvalidArgumentError(`an entry of an acl must look like scheme:id:cdrwa, not ${shown(entry)}`)
    const permissions = [...new Set(letters)].reduce((sum, letter) => sum + LETTERS.get(letter)!, 0)
    return { permissions, scheme, id }
  })
}

/** Returns the ID of a user in an ACL of the scheme `digest`. */
export function digestId(user: string, password: string): string {
  return `${user}:${createHash('sha1').update(`${user}:${password}`).digest('base64')}`
}

/** @throws InvalidArgumentError if it is not a valid ACL */
export function checkAcl(acl: unknown): asserts acl is readonly Acl[] {
  if (!Array.isArray(acl)) throw new InvalidArgumentError(`acl must be an array, not ${shown(acl)}`)
  for (const entry of acl as unknown[]) {
    if (typeof entry !== 'object' || entry === null)
      throw new InvalidArgumentError(
        `acl must have entries with permissions, scheme and id, not ${shown(entry)}`,
      )
    const { permissions, scheme, id } = entry as Partial<Record<keyof Acl, unknown>>
    if (!Number.isInteger(permissions) || Number(permissions) < 1 || Number(permissions) > PERMISSIONS.all)
      throw new InvalidArgumentError(
        `the permissions of an acl must be a sum of PERMISSIONS, 1 to ${PERMISSIONS.all}, not ${shown(permissions)}`,
      )
    if (typeof scheme !== 'string')
      throw new InvalidArgumentError(`the scheme of an acl must be a string, not ${shown(scheme)}`)
    if (typeof id !== 'string')
      throw new InvalidArgumentError(`the id of an acl must be a string, not ${shown(id)}`)
  }
}

export function writeAcl(writer: JuteWriter, acl: readonly Acl[]): JuteWriter {
  return writer.list(acl, ({ permissions, scheme, id }) => writer.int(permissions).text(scheme).text(id))
}

export function readAcl(reader: JuteReader): Acl[] {
  return reader.list(12, () => ({ permissions: reader.int(), scheme: reader.text(), id: reader.text() }))
}
