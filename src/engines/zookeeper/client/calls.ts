import { checkedAcl, readAcl, writeAcl, OPEN_ACL, type Acl } from './acl.js'
import { OPCODE, type Call, type NewWatch, type WatchKind } from './call.js'
import { refusal, type RefusedError } from './errors.js'
import type { JuteReader } from './jute-reader.js'
import type { JuteWriter } from './jute-writer.js'
import { NO_PART } from './multi.js'
import { nodeKind, type CreateOptions } from './node-kind.js'
import { below, without } from './paths.js'
import { readStat, type Stat } from './stat.js'
import type { WatchListener } from './watch-event.js'

/** A node that was created. */
export interface Created {
  /** With the number, where it is sequential. */
  readonly path: string
  readonly stat: Stat
}

/** A node that was created in a transaction. */
export interface CreatedTogether {
  readonly path: string
  /** Undefined from servers before 3.9, which don't tell it there. */
  readonly stat: Stat | undefined
}

/** Data with what is known of its node. */
export interface DataAndStat {
  readonly data: Buffer
  readonly stat: Stat
}

/** The names of a node's children, in no order, with what is known of the node. */
export interface ChildrenAndStat {
  readonly children: string[]
  readonly stat: Stat
}

/** The operations, as a client of one chroot asks for them. */
export class Calls {
  readonly #chroot: string

  constructor(chroot: string) {
    this.#chroot = chroot
  }

  create(path: string, data: Uint8Array, options: CreateOptions): Call<Created> {
    const { opcode, flags, ttl } = nodeKind(options)
    const { acl = OPEN_ACL } = options
    const checked = checkedAcl(acl)
    return {
      name: 'create',
      opcode,
      path,
      repeatable: false,
      write: writer => {
        writer.text(this.#full(path)).bytes(data)
        writeAcl(writer, checked)
        writer.int(flags)
        if (ttl !== undefined) writer.long(ttl)
      },
      read: reader => ({ path: without(this.#chroot, reader.text()), stat: readStat(reader) }),
      readPath: (reader): CreatedTogether => ({
        path: without(this.#chroot, reader.text()),
        stat: undefined,
      }),
    }
  }

  delete(path: string, version: number): Call<undefined> {
    return this.#call('delete', OPCODE.delete, path, false, {
      write: writer => writer.int(version),
      read: () => undefined,
    })
  }

  setData(path: string, data: Uint8Array, version: number): Call<Stat> {
    return this.#call('setData', OPCODE.setData, path, false, {
      write: writer => writer.bytes(data).int(version),
      read: readStat,
    })
  }

  check(path: string, version: number): Call<undefined> {
    return this.#call('check', OPCODE.check, path, false, {
      write: writer => writer.int(version),
      read: () => undefined,
    })
  }

  exists(path: string, listener?: WatchListener): Call<Stat | undefined> {
    const call = this.#call('exists', OPCODE.exists, path, true, {
      write: writer => writer.bool(listener !== undefined),
      read: (reader): Stat | undefined => readStat(reader),
    })
    const watch = listener && ((missing: boolean) => this.#watch(missing ? 'exist' : 'data', path, listener))
    // Absence is an answer, and no error.
    return { ...call, watch, refused: () => undefined }
  }

  getData(path: string, listener?: WatchListener): Call<DataAndStat> {
    const call = this.#call('getData', OPCODE.getData, path, true, {
      write: writer => writer.bool(listener !== undefined),
      read: reader => ({ data: reader.bytes(), stat: readStat(reader) }),
    })
    return { ...call, watch: listener && (() => this.#watch('data', path, listener)) }
  }

  getChildren(path: string, listener?: WatchListener): Call<ChildrenAndStat> {
    const call = this.#call('getChildren', OPCODE.getChildren2, path, true, {
      write: writer => writer.bool(listener !== undefined),
      read: reader => ({ children: reader.list(4, () => reader.text()), stat: readStat(reader) }),
    })
    return { ...call, watch: listener && (() => this.#watch('children', path, listener)) }
  }

  /** Of several nodes, each read for itself. */
  childrenOf(paths: readonly string[]): Call<(string[] | RefusedError)[]> {
    return {
      name: 'getChildren',
      opcode: OPCODE.multiRead,
      path: paths[0] ?? '/',
      repeatable: true,
      write: writer => {
        for (const path of paths)
          writer.int(OPCODE.getChildren).bool(false).int(-1).text(this.#full(path)).bool(false)
        writer.int(NO_PART).bool(true).int(-1)
      },
      read: reader =>
        paths.map(path => {
          const type = reader.int()
          reader.bool()
          reader.int()
          if (type === NO_PART) return refusal('getChildren', path, reader.int())
          return reader.list(4, () => reader.text())
        }),
    }
  }

  getAcl(path: string): Call<{ acl: Acl[]; stat: Stat }> {
    return this.#call('getAcl', OPCODE.getAcl, path, true, {
      write: () => undefined,
      read: reader => ({ acl: readAcl(reader), stat: readStat(reader) }),
    })
  }

  setAcl(path: string, acl: readonly Acl[], version: number): Call<Stat> {
    const checked = checkedAcl(acl)
    return this.#call('setAcl', OPCODE.setAcl, path, false, {
      write: writer => {
        writeAcl(writer, checked)
        writer.int(version)
      },
      read: readStat,
    })
  }

  sync(path: string): Call<undefined> {
    return this.#call('sync', OPCODE.sync, path, true, { write: () => undefined, read: () => undefined })
  }

  getEphemerals(path: string): Call<string[]> {
    return this.#call('getEphemerals', OPCODE.getEphemerals, path, true, {
      write: () => undefined,
      read: reader => reader.list(4, () => without(this.#chroot, reader.text())),
    })
  }

  addWatch(path: string, recursive: boolean, listener: WatchListener): Call<undefined> {
    const call = this.#call('addWatch', OPCODE.addWatch, path, true, {
      write: writer => writer.int(recursive ? 1 : 0),
      read: () => undefined,
    })
    return { ...call, watch: () => this.#watch(recursive ? 'recursive' : 'persistent', path, listener) }
  }

  /** All watches of this session at a path. */
  removeWatches(path: string): Call<undefined> {
    return this.#call('removeWatches', OPCODE.removeWatches, path, true, {
      write: writer => writer.int(3),
      read: () => undefined,
    })
  }

  #call<T>(
    name: string,
    opcode: number,
    path: string,
    repeatable: boolean,
    { write, read }: { write: (writer: JuteWriter) => void; read: (reader: JuteReader) => T },
  ): Call<T> {
    return {
      name,
      opcode,
      path,
      repeatable,
      write: writer => {
        writer.text(this.#full(path))
        write(writer)
      },
      read,
    }
  }

  #watch(kind: WatchKind, path: string, listener: WatchListener): NewWatch {
    return { kind, path: this.#full(path), listener }
  }

  #full(path: string): string {
    return below(this.#chroot, path)
  }
}
