import { createHash } from 'node:crypto'

/** A script, and the hash by which the server knows it. */
export class Script {
  readonly text: string
  readonly sha: string

  constructor(text: string) {
    this.text = text
    this.sha = createHash('sha1').update(text).digest('hex')
  }
}
