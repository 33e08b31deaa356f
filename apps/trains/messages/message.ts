/** What every message has: an id that no other message of the stream has, its type, and the train it is about. */
export interface Message {
  readonly id: string
  readonly type: string
  readonly train: string
}

/** A message and its place in the stream. */
export interface NumberedMessage {
  readonly sequence: number
  readonly message: Message
}

/** A message was refused before anything was done with it; the text says which field, what it got and what it takes. */
export class InvalidMessageError extends Error {
  override readonly name = 'InvalidMessageError'

  /** @param kind the same for all messages with the same fault. */
  constructor(
    message: string,
    readonly kind: string,
  ) {
    super(message)
  }
}
