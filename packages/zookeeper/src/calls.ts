import { checkAcl, OPEN_ACL, readAcl, writeAcl, type Acl } from './acl.js'
import { OPCODE, type Call, type WatchKind } from './call.js'
import { InvalidArgumentError, refusal, shown, type RefusedError } from './errors.js'
import type { JuteReader } from './jute-reader.js'
import type { JuteWriter } from './jute-writer.js'
import { NO_PART } from './multi.js'
import { checkPath } from './paths.js'
import { readStat, type Stat } from './stat.js'
import type { WatchListener } from './watch-event.js'

/** Properties of a new node. It is persistent unless an option says otherwise. */
export interface CreateOptions {
  /** The server deletes the node when the session ends. */
  readonly ephemeral?: boolean
  /** The server appends ten digits to the node's name, a counter of the parent. */
  readonly sequential?: boolean
  /** The server deletes the node some time after its last child was deleted. */
  readonly container?: boolean
  /** The server deletes the node if it has not changed for this many milliseconds and has no children. */
  readonly ttl?: number
  /** The ACL of the node. Default: all permissions for every client. */
  readonly acl?: readonly Acl[]
}

/** A node that was created. */
export interface Created {
  /** Includes the number if the node is sequential. */
  readonly path: string
  readonly stat: Stat
}

/** A node that was created in a transaction. */
export interface CreatedTogether {
  readonly path: string
  /** Undefined with servers before 3.9, which do not return it in a transaction. */
  readonly stat: Stat | undefined
}

/** Data and stat of a node. */
export interface DataAndStat {
  readonly data: Buffer
  readonly stat: Stat
}

/** The names of a node's children, in no particular order, and the node's stat. */
export interface ChildrenAndStat {
  readonly children: string[]
  readonly stat: Stat
}

const MAX_TTL = 2 ** 40 - 1

/** The operations. Each function throws an InvalidArgumentError for arguments that servers would reject. */
export const calls = {
  create(path: string, data: string | Uint8Array, options: CreateOptions): Call<Created> {
    checkPath(path, options.sequential)
    const { acl = OPEN_ACL, ttl } = options
    checkAcl(acl)
    const bytes = toBytes('data', data)
    const { opcode, flags } = nodeKind(options)
    return {
      name: 'create',
      opcode,
      path,
      repeatable: false,
      write: writer => {
        writeAcl(writer.path(path).bytes(bytes), acl)
        writer.int(flags)
        if (ttl !== undefined) writer.long(BigInt(ttl))
      },
      read: reader => ({ path: reader.path(), stat: readStat(reader) }),
      readPath: (reader): CreatedTogether => ({ path: reader.path(), stat: undefined }),
    }
  },

  delete: (path: string, version: number): Call<undefined> =>
    change('delete', OPCODE.delete, path, writer => writer.int(version), nothing),

  setData(path: string, data: string | Uint8Array, version: number): Call<Stat> {
    const bytes = toBytes('data', data)
    return change('setData', OPCODE.setData, path, writer => writer.bytes(bytes).int(version), readStat)
  },

  check: (path: string, version: number): Call<undefined> =>
    change('check', OPCODE.check, path, writer => writer.int(version), nothing),

  setAcl(path: string, acl: readonly Acl[], version: number): Call<Stat> {
    checkAcl(acl)
    return change('setAcl', OPCODE.setAcl, path, writer => writeAcl(writer, acl).int(version), readStat)
  },

  exists(path: string, listener?: WatchListener): Call<Stat | undefined> {
    return { ...watchingRead('exists', OPCODE.exists, path, 'data', listener, readStat), mayBeMissing: true }
  },

  getData(path: string, listener?: WatchListener): Call<DataAndStat> {
    const answer = (reader: JuteReader) => ({ data: reader.bytes(), stat: readStat(reader) })
    return watchingRead('getData', OPCODE.getData, path, 'data', listener, answer)
  },

  getChildren(path: string, listener?: WatchListener): Call<ChildrenAndStat> {
    const answer = (reader: JuteReader) => ({ children: readNames(reader), stat: readStat(reader) })
    return watchingRead('getChildren', OPCODE.getChildren2, path, 'children', listener, answer)
  },

  /** Reads the children of several nodes. Returns an error in the place of a node that can't be read. */
  childrenOf(paths: readonly string[]): Call<(string[] | RefusedError)[]> {
    for (const path of paths) checkPath(path)
    return {
      name: 'getChildren',
      opcode: OPCODE.multiRead,
      path: paths[0] ?? '/',
      repeatable: true,
      write: writer => {
        for (const path of paths) writer.int(OPCODE.getChildren).bool(false).int(-1).path(path).bool(false)
        writer.int(NO_PART).bool(true).int(-1)
      },
      read: reader =>
        paths.map(path => {
          const type = reader.int()
          reader.bool()
          reader.int()
          return type === NO_PART ? refusal('getChildren', path, reader.int()) : readNames(reader)
        }),
    }
  },

  getAcl: (path: string): Call<{ acl: Acl[]; stat: Stat }> =>
    read('getAcl', OPCODE.getAcl, path, nothing, reader => ({
      acl: readAcl(reader),
      stat: readStat(reader),
    })),

  sync: (path: string): Call<undefined> => read('sync', OPCODE.sync, path, nothing, nothing),

  getEphemerals: (path: string): Call<string[]> =>
    read('getEphemerals', OPCODE.getEphemerals, path, nothing, reader => reader.list(4, () => reader.path())),

  addWatch(path: string, recursive: boolean, listener: WatchListener): Call<undefined> {
    const kind = recursive ? 'recursive' : 'persistent'
    const call = read('addWatch', OPCODE.addWatch, path, writer => writer.int(recursive ? 1 : 0), nothing)
    return { ...call, watch: { kind, path, listener } }
  },

  /** Removes all watches of this session at a path. */
  removeWatches: (path: string): Call<undefined> =>
    read('removeWatches', OPCODE.removeWatches, path, writer => writer.int(3), nothing),
}

/** Returns the bytes to send. @throws InvalidArgumentError */
export function toBytes(option: string, data: unknown): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data)
  if (data instanceof Uint8Array) return data
  throw new InvalidArgumentError(`${option} must be a string or bytes, not ${shown(data)}`)
}

/** An operation that changes something. */
function change<T>(
  name: string,
  opcode: number,
  path: string,
  write: (writer: JuteWriter) => void,
  read: (reader: JuteReader) => T,
): Call<T> {
  checkPath(path)
  return { name, opcode, path, repeatable: false, write: writer => write(writer.path(path)), read }
}

/** An operation that changes nothing. */
function read<T>(
  name: string,
  opcode: number,
  path: string,
  write: (writer: JuteWriter) => void,
  answer: (reader: JuteReader) => T,
): Call<T> {
  return { ...change(name, opcode, path, write, answer), repeatable: true }
}

function watchingRead<T>(
  name: string,
  opcode: number,
  path: string,
  kind: WatchKind,
  listener: WatchListener | undefined,
  answer: (reader: JuteReader) => T,
): Call<T> {
  const call = read(name, opcode, path, writer => writer.bool(listener !== undefined), answer)
  return { ...call, watch: listener && { kind, path, listener } }
}

function nothing(): undefined {
  return undefined
}

function readNames(reader: JuteReader): string[] {
  return reader.list(4, () => reader.text())
}

/** Encodes the properties of a node. @throws InvalidArgumentError if the options contradict each other */
function nodeKind({ ephemeral = false, sequential = false, container = false, ttl }: CreateOptions) {
  if (container && (ephemeral || sequential || ttl !== undefined))
    throw new InvalidArgumentError('a container must not be ephemeral or sequential, or have a ttl')
  if (ttl !== undefined) {
    if (ephemeral) throw new InvalidArgumentError('an ephemeral node must not have a ttl')
    if (!Number.isSafeInteger(ttl) || ttl < 1 || ttl > MAX_TTL)
      throw new InvalidArgumentError(
        `ttl must be a whole number of milliseconds from 1 to ${MAX_TTL}, not ${shown(ttl)}`,
      )
    return { opcode: OPCODE.createTtl, flags: sequential ? 6 : 5 }
  }
  if (container) return { opcode: OPCODE.createContainer, flags: 4 }
  return { opcode: OPCODE.create2, flags: (ephemeral ? 1 : 0) + (sequential ? 2 : 0) }
}
