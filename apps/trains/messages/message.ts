/** The fields of every message: an ID that is unique in the stream, its type, and its train. */
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

/** Thrown for an invalid message. The text names the field, the requirement, and the actual value. */
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
