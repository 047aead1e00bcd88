// What Lightning 2.6.6's CSVLogger writes, by lightning_csv.py.
// clang-format off
static const char *const lightning_yaml_empty =
  "{}\012";
static const char *const lightning_yaml_usual =
  "lr: 0.01\012"
  "momentum: 0.5\012";
static const char *const lightning_yaml_kinds =
  "a,b: 1\012"
  "b: true\012"
  "big: 1.0e+16\012"
  "brace: '{}'\012"
  "colon: 'a: b'\012"
  "dash: '- x'\012"
  "date: '2020-01-01'\012"
  "empty: ''\012"
  "eps: 1.0e-08\012"
  "h: 3abc\012"
  "hex: '0x1f'\012"
  "inf: .inf\012"
  "n: 3\012"
  "nan: .nan\012"
  "ninf: -.inf\012"
  "none: null\012"
  "num: '1.5'\012"
  "opt: adam\012"
  "path: a/b c\012"
  "q: it's\012"
  "'true': x\012"
  "u: \"\\xE9\"\012"
  "v: version_3\012"
  "x#: 'a #b'\012"
  "'yes': 'no'\012";
static const char *const lightning_plain =
  "epoch,loss,step\015\012"
  "0,0.10000000149011612,0\015\012"
  "0,0.25,1\015\012";
static const char *const lightning_late_key =
  "a,epoch,step,test_loss,train_loss,val_acc,val_loss\015\012"
  ",0,4,,2.2652575969696045,,\015\012"
  ",0,9,,,0.3140000104904175,2.230478525161743\015\012"
  "1.5,1,9,,,,\015\012"
  ",2,20,1e-05,,,\015\012";
static const char *const lightning_not_finite =
  "a,b,c,step\015\012"
  "nan,inf,-inf,0\015\012"
  "-0.0,,,1\015\012";
static const char *const lightning_numbers =
  "a,b,c,d,e,f,g,h,i,j,k,l,step\015\012"
  "3.0,3,-7,1e+16,123456789012345.0,0.0001,1e-05,5e-324,1.7976931348623157e+308,7.120236347223045e-307,9007199254740992.0,0.30000000000000004,0\015\012";
static const char *const lightning_prefix =
  "run-loss,run-step,step\015\012"
  "0.5,7,0\015\012"
  "0.25,,1\015\012";
static const char *const lightning_step_value =
  "loss,step\015\012"
  "1.0,3\015\012";
static const char *const lightning_flush =
  "a,b,step\015\012"
  "1.0,,0\015\012"
  "2.0,,1\015\012"
  ",3.0,2\015\012"
  ",4.0,3\015\012";
static const char *const lightning_only_steps =
  "step\015\012"
  "0\015\012"
  "1\015\012";
static const char *const lightning_names =
  "Z,_,\"a,b\",a/b,\"cr\015\",later,\"say \"\"x\"\"\",step,\"two\012"
  "lines\",\303\251\015\012"
  "6.0,7.0,1.0,4.0,8.0,,2.0,0,3.0,5.0\015\012"
  ",,,,,9.0,,1,,\015\012";
static const char *const lightning_again =
  "b,step\015\012"
  "2.0,0\015\012";
static const char *const lightning_emptied =
  NULL;
