import type { Log } from '../log/log.js'

/** What is not as it should be. */
export interface Fault {
  /** The same for all lines with the same fault. */
  readonly kind: string
  /** What it is, with what the line has. */
  readonly reason: string
}

/** A fault of a line of the input. */
export interface Finding extends Fault {
  readonly file: string
  /** The line's number in the file, counted from 1. */
  readonly line: number
}

/** All findings of one kind in one file. */
export interface FoundKind {
  readonly file: string
  readonly kind: string
  /** How many there are. */
  lines: number
  /** The first in the file. */
  first: { readonly line: number; readonly reason: string }
}

/** What was found in an input. */
export interface FindingsSummary {
  /** Lines that could not be used: what they say is lost. */
  readonly rejected: number
  readonly rejections: readonly FoundKind[]
  /** Faults of lines that were used all the same. */
  readonly repaired: number
  readonly repairs: readonly FoundKind[]
}

/** What is reported about the input while it is read. */
export interface FindingsListener {
  /** The line can't be used: what it says is lost, and reading continues. */
  rejected(finding: Finding): void
  /** The line is used all the same, and how. */
  repaired(finding: Finding): void
}

/** Counts what was found in the input. The log has one of each kind; with the level `debug` all. */
export class Findings implements FindingsListener {
  readonly #log: Log
  readonly #rejected = new Map<string, FoundKind>()
  readonly #repaired = new Map<string, FoundKind>()

  constructor(log: Log) {
    this.#log = log
  }

  rejected(finding: Finding): void {
    this.#add(this.#rejected, 'rejected', finding)
  }

  repaired(finding: Finding): void {
    this.#add(this.#repaired, 'repaired', finding)
  }

  /** What was found so far. */
  get summary(): FindingsSummary {
    const [rejections, repairs] = [[...this.#rejected.values()], [...this.#repaired.values()]]
    return { rejected: countOf(rejections), rejections, repaired: countOf(repairs), repairs }
  }

  #add(kinds: Map<string, FoundKind>, event: string, { file, line, kind, reason }: Finding): void {
    const key = JSON.stringify([kind, file])
    const found = kinds.get(key)
    this.#log[found ? 'debug' : 'warn'](event, { file, line, reason })
    if (found) {
      found.lines++
      if (line < found.first.line) found.first = { line, reason }
    } else kinds.set(key, { file, kind, lines: 1, first: { line, reason } })
  }
}

function countOf(kinds: readonly FoundKind[]): number {
  return kinds.reduce((sum, { lines }) => sum + lines, 0)
}
