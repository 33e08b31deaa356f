/** Exit statuses of the command, each with its text for help. */
export const EXIT = {
  fine: { status: 0, text: 'done, and every location agrees with the serial result' },
  mismatch: { status: 1, text: 'a location differs from the serial result' },
  badInput: {
    status: 2,
    text: 'the command line or the input is invalid, or another run is using the engine; nothing was done',
  },
  deadLetters: { status: 3, text: 'done and correct, but messages were dead-lettered' },
  aborted: {
    status: 4,
    text: 'aborted: the engine is unusable, or workers died repeatedly; --resume continues',
  },
  rejected: { status: 5, text: 'done and correct, but input lines were rejected, and --strict was given' },
  interrupted: { status: 130, text: 'ended by Ctrl-C; --resume continues' },
} as const
