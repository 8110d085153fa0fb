// Every reason that an error of ours may carry in google.rpc.ErrorInfo, with its code. They are part of the
// interface: add, never rename.
#ifndef KVASIR_COMMON_BASE_ERROR_REASONS_H_
#define KVASIR_COMMON_BASE_ERROR_REASONS_H_

namespace kvasir::reason {

// INVALID_ARGUMENT: the request is wrong whatever the state; a field is named.
inline constexpr char kMalformedMessage[] = "MALFORMED_MESSAGE";  // the bytes are not the message
inline constexpr char kMissingField[] = "MISSING_FIELD";          // a required field is absent or empty
inline constexpr char kValueOutOfRange[] = "VALUE_OUT_OF_RANGE";  // outside the documented limits
inline constexpr char kUnknownValue[] = "UNKNOWN_VALUE";    // a word or enum value that is not in the list
inline constexpr char kTooManyItems[] = "TOO_MANY_ITEMS";   // a list is longer than its limit
inline constexpr char kDuplicateItem[] = "DUPLICATE_ITEM";  // two items of a list have one key
inline constexpr char kBadName[] = "BAD_NAME";              // characters or length of a name
inline constexpr char kBadAddress[] = "BAD_ADDRESS";        // not host:port
inline constexpr char kConflictingFields[] = "CONFLICTING_FIELDS";  // two fields contradict each other
inline constexpr char kModelUnknown[] = "MODEL_UNKNOWN";            // NOT_FOUND: no such catalogue entry
inline constexpr char kModelConfigInvalid[] = "MODEL_CONFIG_INVALID";
inline constexpr char kModelTextInvalid[] = "MODEL_TEXT_INVALID";
inline constexpr char kModelDigestMismatch[] = "MODEL_DIGEST_MISMATCH";  // the plan names another description
inline constexpr char kPlanTextInvalid[] = "PLAN_TEXT_INVALID";
inline constexpr char kPlanHashMismatch[] = "PLAN_HASH_MISMATCH";  // plan_id is not the text's SHA-256
inline constexpr char kPlanInvalid[] = "PLAN_INVALID";  // the text parses, its numbers do not verify
inline constexpr char kRanksIncomplete[] =
    "RANKS_INCOMPLETE";  // the workers lack or repeat a rank of the plan

// Checkpoints: INVALID_ARGUMENT unless it says otherwise; metadata file, tensor, value.
inline constexpr char kCheckpointInvalid[] = "CHECKPOINT_INVALID";     // a file is not well formed
inline constexpr char kCheckpointMismatch[] = "CHECKPOINT_MISMATCH";   // its tensors are not the model's
inline constexpr char kCheckpointPath[] = "CHECKPOINT_PATH";           // outside the worker's checkpoint root
inline constexpr char kCheckpointNotFound[] = "CHECKPOINT_NOT_FOUND";  // NOT_FOUND
inline constexpr char kCheckpointUnsupported[] = "CHECKPOINT_UNSUPPORTED";  // FAILED_PRECONDITION
inline constexpr char kCheckpointUnreadable[] = "CHECKPOINT_UNREADABLE";  // DATA_LOSS: changed or unreadable

// RESOURCE_EXHAUSTED.
inline constexpr char kMessageTooLarge[] = "MESSAGE_TOO_LARGE";
inline constexpr char kServerBusy[] = "SERVER_BUSY";     // too many calls wait
inline constexpr char kOutOfMemory[] = "OUT_OF_MEMORY";  // the worker cannot hold the plan; shortfall_bytes
inline constexpr char kOutOfBlocks[] = "OUT_OF_BLOCKS";  // no room for another sequence now
inline constexpr char kTooManyRequests[] = "TOO_MANY_REQUESTS";  // max_requests sequences run already
inline constexpr char kClientTooSlow[] = "CLIENT_TOO_SLOW";      // its stream's events were not read in time

// ABORTED: somebody else was faster; read the state and decide again.
inline constexpr char kStaleEpoch[] = "STALE_EPOCH";  // the worker has seen a higher epoch
inline constexpr char kEpochTaken[] = "EPOCH_TAKEN";  // the same epoch with another plan
inline constexpr char kEpochEnded[] = "EPOCH_ENDED";  // the epoch was aborted, released or lost
inline constexpr char kApplyInProgress[] = "APPLY_IN_PROGRESS";
inline constexpr char kApplySuperseded[] = "APPLY_SUPERSEDED";  // a delete or another dispatcher overtook it

// NOT_FOUND.
inline constexpr char kDeploymentUnknown[] = "DEPLOYMENT_UNKNOWN";
inline constexpr char kSequenceUnknown[] = "SEQUENCE_UNKNOWN";

// FAILED_PRECONDITION: the state forbids it; the message says what must change.
inline constexpr char kNotPrepared[] = "NOT_PREPARED";  // commit without a preparation, or its lease is over
inline constexpr char kNotRunning[] = "NOT_RUNNING";    // no plan serves under this epoch
inline constexpr char kAlreadyCommitted[] = "ALREADY_COMMITTED";  // abort of the running plan: release it
inline constexpr char kPlanRetired[] = "PLAN_RETIRED";            // the plan was replaced or released
inline constexpr char kNotLeader[] = "NOT_LEADER";                // metadata leader_address
inline constexpr char kRanksDisagree[] = "RANKS_DISAGREE";        // metadata rank, fact, value, others
inline constexpr char kStepOutOfOrder[] = "STEP_OUT_OF_ORDER";
inline constexpr char kBackendUnsupportedGroup[] = "BACKEND_UNSUPPORTED_GROUP";
inline constexpr char kPreflightFailed[] = "PREFLIGHT_FAILED";  // rows or replays differ from the reference
inline constexpr char kStoreLocked[] = "STORE_LOCKED";          // another planner has the state directory
inline constexpr char kRankCapacity[] = "RANK_CAPACITY";        // the worker hosts fewer ranks than asked for

// UNAVAILABLE: try again later.
inline constexpr char kPeerUnreachable[] = "PEER_UNREACHABLE";  // a worker or planner; metadata peer
inline constexpr char kRankLost[] = "RANK_LOST";                // a peer is gone; the deployment cannot serve
inline constexpr char kPlannerRestarted[] = "PLANNER_RESTARTED";  // an apply that had not reached its commit
inline constexpr char kServerStopping[] = "SERVER_STOPPING";

// DEADLINE_EXCEEDED, CANCELLED, DATA_LOSS, INTERNAL.
inline constexpr char kDeadlineExpired[] = "DEADLINE_EXPIRED";
inline constexpr char kCallCancelled[] = "CALL_CANCELLED";
inline constexpr char kStoreCorrupt[] = "STORE_CORRUPT";  // DATA_LOSS: a file of the state directory
inline constexpr char kNotANumber[] = "NOT_A_NUMBER";     // DATA_LOSS: NaN or +inf reached a combine
inline constexpr char kStoreUnwritable[] =
    "STORE_UNWRITABLE";  // INTERNAL: the state directory cannot be written

}  // namespace kvasir::reason

#endif  // KVASIR_COMMON_BASE_ERROR_REASONS_H_
